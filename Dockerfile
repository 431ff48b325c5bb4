# The service as a non-root user; everything it runs is pinned by the hashed lock file of its own,
# without the tools of development.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/planner
COPY requirements-service.lock pyproject.toml README.md LICENSE ./
RUN /opt/planner/bin/pip install --no-cache-dir --require-hashes -r requirements-service.lock
COPY planner planner
COPY api api
COPY migrations migrations
RUN /opt/planner/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN useradd --uid 10001 --create-home --home-dir /var/lib/planner --shell /usr/sbin/nologin planner
COPY --from=build /opt/planner /opt/planner
ENV PATH=/opt/planner/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PLANNER_HOST=0.0.0.0 \
    PLANNER_PORT=8000
USER 10001
WORKDIR /var/lib/planner
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD \
    ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health/ready', timeout=2)"]
STOPSIGNAL SIGTERM
CMD ["planner", "serve"]
