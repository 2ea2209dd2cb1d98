# The proxy as a service:
#
#   docker build -t alidade .
#   docker run -p 4000:4000 -v alidade-data:/data alidade --engine http://my-vllm:8000
#
# 4000 is what harnesses call. The control listener (4001), which opens sessions and reads trajectories, stays on the
# container's loopback: a trainer joins its network (docker run --network container:<this one>). Calls are kept in /data.
FROM node:24-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# The pinned node package is for machines without Node 24; this image is one.
RUN npm install --ignore-scripts --no-audit --no-fund
COPY . .
RUN node bin/build.mjs && npm prune --omit=dev --ignore-scripts --no-audit --no-fund
# For a ledger in Postgres (deploy/compose.yaml).
RUN npm install --prefix /postgres --ignore-scripts --no-audit --no-fund "pg@$(node -p 'require("./package.json").peerDependencies.pg')"

FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /opt/alidade
COPY --from=build /src/package.json /src/LICENSE ./
COPY --from=build /src/bin ./bin
COPY --from=build /src/node_modules ./node_modules
COPY --from=build /postgres/node_modules ./node_modules
COPY --from=build /src/dist ./dist
RUN ln -s /opt/alidade/bin/alidade.js /usr/local/bin/alidade && mkdir /data && chown node:node /data
USER node
WORKDIR /data
VOLUME /data
EXPOSE 4000
ENTRYPOINT ["alidade", "serve", "--host", "0.0.0.0"]
CMD ["--help"]
