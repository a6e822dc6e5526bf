# raterwise on the CPU. Build: docker build -t raterwise .   Try, offline: docker run --rm --network none raterwise
# Evaluate: docker run --rm --network none -v "$PWD:/data" raterwise evaluate predictions.csv --ratings ratings.csv
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/raterwise \
    && /opt/raterwise/bin/pip install --no-cache-dir -c constraints.txt ".[report]"

FROM python:3.12-slim
COPY --from=build /opt/raterwise /opt/raterwise
ENV PATH=/opt/raterwise/bin:$PATH NUMBA_CACHE_DIR=/tmp/numba MPLCONFIGDIR=/tmp/matplotlib
RUN useradd --create-home rater && mkdir /data && chown rater /data
USER rater
WORKDIR /data
ENTRYPOINT ["raterwise"]
CMD ["demo"]
