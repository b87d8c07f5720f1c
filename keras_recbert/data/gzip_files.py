"""Files that gzip may have compressed."""

import gzip
import zlib
from pathlib import Path


def read_bytes(path) -> bytes:
    """The content of a file, decompressed where its name ends with `.gz`.

    Raises:
        ValueError: if a `.gz` is no whole gzip file.
    """
    content = Path(path).read_bytes()
    if Path(path).suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no whole gzip file: {error}.") from None
