# An image that runs shoal as a user without rights, with everything compiled beforehand:
#   docker build -t shoal .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" shoal protect people.csv --plan plan.toml --out release
FROM python:3.12-slim

# Which extras the image has, as EXTRAS=excel,sql,study; see pyproject.toml.
ARG EXTRAS=excel,sql

COPY pyproject.toml README.md LICENSE /source/
COPY docs /source/docs
COPY src /source/src
RUN pip install --no-cache-dir "/source[${EXTRAS}]" && rm -r /source

# Compiled code is for any processor of this kind, and anybody may read it.
ENV NUMBA_CACHE_DIR=/opt/shoal/compiled NUMBA_CPU_NAME=generic
RUN mkdir -p "$NUMBA_CACHE_DIR" && shoal warm && chmod -R a+rX /opt/shoal

RUN useradd --create-home --uid 10001 shoal && install -d -o shoal -g shoal /work
USER shoal
WORKDIR /work
ENTRYPOINT ["shoal"]
CMD ["--help"]
