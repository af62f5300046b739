"""Ask a service by a client generated from its description; run by test_clients.py."""

import json
import sys

sys.path.insert(0, sys.argv[2])
from lpcfg_client import Client
from lpcfg_client.api.default import parse_v1_parse_post
from lpcfg_client.models import ParseRequest, Problem

client = Client(base_url=sys.argv[1])
found = parse_v1_parse_post.sync(client=client, body=ParseRequest(text="The dog saw a cat."))
refused = parse_v1_parse_post.sync(client=client, body=ParseRequest())
assert isinstance(refused, Problem)
print(json.dumps({"tree": found.sentences[0].parses[0].tree, "problem": refused.status}))
