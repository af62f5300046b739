"""Clients of the service, synchronous and asynchronous, with retries and typed answers.

with Client("http://127.0.0.1:8000") as client:
    answer = client.parse("The cat sat on the mat.")
    print(answer.sentences[0].parses[0].tree)
"""

from lpcfg.client.asynchronous import AsyncClient
from lpcfg.client.messages import ServiceError
from lpcfg.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "ServiceError"]
