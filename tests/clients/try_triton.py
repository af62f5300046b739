"""Ask a service by Triton's client; run by test_clients.py, in the clients' environment."""

import json
import sys

import numpy as np
import tritonclient.http as triton

client = triton.InferenceServerClient(sys.argv[1])
told = {
    "live": client.is_server_live(),
    "ready": client.is_server_ready(),
    "model": client.is_model_ready("small"),
    "version": client.is_model_ready("small", "1"),
    "none": client.is_model_ready("none"),
    "server": client.get_server_metadata()["name"],
    "inputs": client.get_model_metadata("small")["inputs"],
}
text = triton.InferInput("text", [2], "BYTES")
text.set_data_from_numpy(np.array([b"The dog saw a cat.", "Élan.".encode()], dtype=object))
for binary in (False, True):
    text.set_data_from_numpy(
        np.array([b"The dog saw a cat.", "Élan.".encode()], dtype=object), binary_data=binary
    )
    found = client.infer("small", [text], outputs=[triton.InferRequestedOutput("tree", False)])
    told[f"trees {binary}"] = [str(one) for one in found.as_numpy("tree")]
try:
    client.infer("none", [text])
except triton.InferenceServerException as error:
    told["error"] = error.message()
print(json.dumps(told))
