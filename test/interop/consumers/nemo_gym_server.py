"""NeMo Gym's own server of multiple-choice questions, on a free port of loopback, which the first line of the output says."""

import socket

import uvicorn
from nemo_gym.server_utils import ServerClient
from resources_servers.mcqa.app import MCQAResourcesServer, MCQAResourcesServerConfig

bound = socket.create_server(("127.0.0.1", 0))
config = MCQAResourcesServerConfig(host="127.0.0.1", port=bound.getsockname()[1], entrypoint="app.py", domain="knowledge", name="mcqa")
# It asks no other server of Gym's.
server = MCQAResourcesServer(config=config, server_client=ServerClient.model_construct())
print(config.port, flush=True)
uvicorn.Server(uvicorn.Config(server.setup_webserver(), log_level="warning")).run(sockets=[bound])
