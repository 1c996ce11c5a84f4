# The web service of `python -m serve`, with the exports of a folder:
#   docker build -t keras-transformer-service .
#   docker run -p 5000:5000 -v "$PWD/exports:/exports" \
#       keras-transformer-service --pair en:es=/exports/demo
FROM python:3.12-slim
WORKDIR /app
COPY setup.cfg setup.py pyproject.toml README.md LICENSE ./
COPY keras_transformer keras_transformer
COPY command_line command_line
COPY convert convert
COPY demo_corpus demo_corpus
COPY export export
COPY litert_translator litert_translator
COPY text_processing text_processing
COPY train train
RUN pip install --no-cache-dir '.[train,web,litert]' && useradd service
USER service
EXPOSE 5000
ENTRYPOINT ["keras-transformer", "serve", "--host", "0.0.0.0"]
