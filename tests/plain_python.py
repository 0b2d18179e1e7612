"""What a piece of code prints with the compiled kernels, and with the same kernels as plain Python."""

import os
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO


def compiled_and_plain(code: str) -> tuple[str, str]:
    """Run it here, and in a process without the compiler."""
    with redirect_stdout(StringIO()) as compiled:
        exec(code, {})
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", "-c", code]
    plain = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert plain.returncode == 0, plain.stderr
    return compiled.getvalue(), plain.stdout
