# The service with its default model and its kernels compiled. No shell tricks at run time: what a
# container starts is what was tried while the image was built.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python3 -m venv /opt/lpcfg
# requirements-batch.lock adds what parsing of collections on S3 and on many machines needs
ARG LOCK=requirements.lock
COPY ${LOCK} ./
RUN /opt/lpcfg/bin/python -m pip install --require-hashes --requirement ${LOCK}
COPY pyproject.toml setup.py README.md LICENSE ./
COPY service service
RUN /opt/lpcfg/bin/python -m pip install --no-deps --no-build-isolation .
COPY model_store /opt/lpcfg/model_store
COPY deploy/sbom.py ./
# A model that another store lacks is looked for inside the package. Serving never imports the tests
# of packages, nor pip. The list of packages comes first.
RUN ln -s /opt/lpcfg/model_store /opt/lpcfg/lib/python3*/site-packages/lpcfg/ \
    && /opt/lpcfg/bin/python sbom.py /opt/lpcfg/sbom.cdx.json \
    && find /opt/lpcfg/lib/python3*/site-packages/scipy /opt/lpcfg/lib/python3*/site-packages/numba \
       -type d -name tests -prune -exec rm -rf {} + \
    && rm -rf /opt/lpcfg/lib/python3*/site-packages/pip /opt/lpcfg/lib/python3*/site-packages/pip-*

# Compiled for a named processor instead of the one that builds: x86-64-v3 is every server since
# 2015; `generic` runs anywhere, more slowly, and is the one to name for arm64. The kernels' cache
# knows sources by their time of change, and layers keep whole seconds.
ARG KERNELS_FOR=x86-64-v3
ENV NUMBA_CPU_NAME=${KERNELS_FOR} \
    NUMBA_CPU_FEATURES="" \
    NUMBA_CACHE_DIR=/opt/lpcfg/kernels \
    OMP_NUM_THREADS=1
RUN find /opt/lpcfg/lib -name '*.py' -exec touch --date=@0 {} + \
    && /opt/lpcfg/bin/lpcfg serve --check --store /opt/lpcfg/model_store

FROM ${BASE}
ARG KERNELS_FOR=x86-64-v3
ARG VERSION=0.2.0
ARG REVISION=unknown
ARG CREATED=unknown
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="lpcfg" \
      org.opencontainers.image.description="Constituency parsing as a service" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}"
COPY --from=build /opt/lpcfg /opt/lpcfg
COPY --chmod=555 deploy/start deploy/with-kernels /opt/lpcfg/bin/
# /tmp is the only place that must be writable.
ENV PATH=/opt/lpcfg/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    MALLOC_ARENA_MAX=2 \
    NUMBA_CPU_NAME=${KERNELS_FOR} \
    NUMBA_CPU_FEATURES="" \
    NUMBA_CACHE_DIR=/tmp/kernels \
    LPCFG_MODEL_STORE=/opt/lpcfg/model_store \
    LPCFG_HOST=0.0.0.0 \
    LPCFG_DRAIN_SECONDS=5
USER 10001:10001
WORKDIR /tmp
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/v2/health/ready', timeout=2)"]
ENTRYPOINT ["/opt/lpcfg/bin/start"]
