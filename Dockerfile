# An image that runs shoal as an unprivileged user, with all kernels compiled:
#   docker build -t shoal .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" shoal protect people.csv --plan plan.toml --out release
FROM python:3.12-slim

# The extras of the image, such as EXTRAS=excel,sql,study; see pyproject.toml.
ARG EXTRAS=excel,sql

COPY pyproject.toml README.md LICENSE /source/
COPY docs /source/docs
COPY src /source/src
RUN pip install --no-cache-dir "/source[${EXTRAS}]" && rm -r /source

# The compiled code runs on any processor of this architecture, and every user can read it.
ENV NUMBA_CACHE_DIR=/opt/shoal/compiled NUMBA_CPU_NAME=generic
RUN mkdir -p "$NUMBA_CACHE_DIR" && shoal warm && chmod -R a+rX /opt/shoal

RUN useradd --create-home --uid 10001 shoal && install -d -o shoal -g shoal /work
USER shoal
WORKDIR /work
ENTRYPOINT ["shoal"]
CMD ["--help"]
