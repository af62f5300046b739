"""Ask a service by KServe's client; run by test_clients.py, in the clients' environment."""

import asyncio
import json
import sys

from kserve import InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig


async def main(base: str) -> None:
    """Print what the client was told."""
    client = InferenceRESTClient(RESTConfig(protocol="v2", retries=1))
    text = InferInput("text", [1], "BYTES", data=["The dog saw a cat."])
    request = InferRequest(model_name="small", infer_inputs=[text])
    found = await client.infer(base, request, model_name="small")
    told = {
        "live": await client.is_server_live(base),
        "ready": await client.is_server_ready(base),
        "model": await client.is_model_ready(base, "small"),
        "trees": {one.name: one.data for one in found.outputs}["tree"],
    }
    print(json.dumps(told))


asyncio.run(main(sys.argv[1]))
