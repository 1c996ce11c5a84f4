# The web service of `python -m serve`, with the exports of a folder:
#   docker build -t keras-transformer-service .
#   docker run -p 5000:5000 -v "$PWD/exports:/exports" \
#       keras-transformer-service --pair en:es=/exports/demo
FROM python:3.12-slim
WORKDIR /app
COPY . .
RUN pip install --no-cache-dir '.[train,web,litert]' && useradd service
USER service
EXPOSE 5000
ENTRYPOINT ["keras-transformer", "serve", "--host", "0.0.0.0"]
