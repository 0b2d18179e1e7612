"""Our ranker inside LitServe; a module of its own: LitServe's workers import it anew, and read its annotations."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from slatewise import load

K = 20
_litserve: Any = import_module("litserve") if find_spec("litserve") else None  # where it is not, nobody runs this
_Base: Any = object if _litserve is None else _litserve.LitAPI


class Api(_Base):
    """Ranks what LitServe puts together."""

    path: str = ""

    def setup(self, device: Any) -> None:
        """Load the model and compile."""
        self.ranker = load(self.path)
        self.ranker.rank([0], K)

    def decode_request(self, request: dict[str, Any]) -> Any:
        """Return the queries."""
        return request["queries"]

    def batch(self, inputs: Any) -> Any:
        """Leave the requests in a list."""
        return inputs

    def predict(self, x: Any) -> Any:
        """Rank one query of each request."""
        found = self.ranker.rank([queries[0] for queries in x], K)
        return list(zip(found.ids.tolist(), found.scores.tolist(), strict=True))

    def unbatch(self, output: Any) -> Any:
        """Leave the answers in a list."""
        return output

    def encode_response(self, output: Any) -> Any:
        """Return what becomes JSON."""
        return {"ids": output[0], "scores": output[1]}


def run(path: str, port: int) -> None:
    """Serve."""
    api = Api(max_batch_size=64, batch_timeout=0.001)
    api.path = path
    server = _litserve.LitServer(api, accelerator="cpu")
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="error")
