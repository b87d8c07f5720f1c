"""What tests of data files share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes a file below `tmp_path` and returns its path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode("utf-8") if isinstance(content, str) else content
        path.write_bytes(data)
        return path

    return write
