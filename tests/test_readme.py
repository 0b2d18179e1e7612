"""What the README shows runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_code_of_the_readme_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tags.safetensors").exists()
