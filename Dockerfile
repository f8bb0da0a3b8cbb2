# docker build -t foreshard .
# docker run --rm -v "$PWD:/work" foreshard simulate study.yaml
FROM debian:12 AS build
COPY tools/packages.txt /tmp/packages.txt
RUN apt-get update && \
    awk '$1 == "build" {print $2}' /tmp/packages.txt | \
      xargs apt-get install -y --no-install-recommends && \
    rm -rf /var/lib/apt/lists/*
COPY . /foreshard
WORKDIR /foreshard
RUN cmake --preset release -DFORESHARD_TESTS=OFF -DFORESHARD_BENCHMARKS=OFF && \
    cmake --build build/release && \
    cmake --install build/release --prefix /opt/foreshard --strip

FROM debian:12-slim
COPY tools/packages.txt /tmp/packages.txt
RUN apt-get update && \
    awk '$1 == "use" {print $2}' /tmp/packages.txt | \
      xargs apt-get install -y --no-install-recommends && \
    rm -rf /var/lib/apt/lists/* /tmp/packages.txt
COPY --from=build /opt/foreshard /opt/foreshard
ENV PATH=/opt/foreshard/bin:$PATH
# Every library is there, and the example is predicted.
RUN foreshard-replay --help >/dev/null && foreshard simulate gpt-1.7b-a100-8 >/dev/null
RUN useradd --create-home foreshard
USER foreshard
WORKDIR /work
ENTRYPOINT ["foreshard"]
CMD ["--help"]
