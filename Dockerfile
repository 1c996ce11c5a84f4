# The web service of `python -m serve`, with the exports of a folder:
#   docker build -t keras-transformer-service .
#   docker run -p 127.0.0.1:5000:5000 -v "$PWD/exports:/exports" \
#       keras-transformer-service --pair en:es=/exports/demo
FROM python:3.11-slim
WORKDIR /app
COPY . .
# Linux keeps SIGTERM from the first process of a container, which is tini.
RUN apt-get update && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir --constraint constraints.txt '.[web]' && useradd service
USER service
EXPOSE 5000
ENTRYPOINT ["tini", "--", "keras-transformer", "serve", "--host", "0.0.0.0"]
