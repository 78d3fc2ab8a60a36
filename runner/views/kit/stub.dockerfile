ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}
COPY main.py /app/main.py
COPY examples /app/examples
