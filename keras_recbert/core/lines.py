"""Lines of text files, read with bounded memory.

Nothing ends a line but a line feed: real texts hold U+2028, U+0085 and lone carriage
returns.
"""

import codecs

# Of a longer line the rest is left out, and that is counted. Ten times the longest
# article of Wikipedia; the largest books, as one line of JSON, are below it too.
MAX_LINE_BYTES = 8 << 20
_CHUNK = 1 << 20


def read_lines(file, max_line_bytes=MAX_LINE_BYTES):
    """Reads lines, of each at most so many bytes.

    Args:
        file: file opened for reading bytes.
        max_line_bytes: int. Bytes of a line that are kept, its line end not counted.

    Yields:
        Tuple of the line, bytes with the line feed; and its size in the file. A line
        that was cut is shorter than its size, has no line feed, and ends with a whole
        character of UTF-8.
    """
    most = max_line_bytes + 1
    while line := file.readline(most):
        size = len(line)
        if size == most and not line.endswith(b"\n"):
            line = _whole_characters(line[:max_line_bytes])
            size += skip_line(file)
        yield line, size


def skip_line(file):
    """Reads to the end of a line; returns the number of bytes."""
    size = 0
    while chunk := file.readline(_CHUNK):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return size


def _whole_characters(cut):
    """Drops a character of UTF-8 that was cut at the end, or might have been."""
    for back in range(1, 4):
        byte = cut[-back:][:1]
        if byte >= b"\xc0":  # where a character of several bytes begins
            return cut[:-back]
        if byte < b"\x80":
            break
    return cut


def decode_line(line, path, number):
    """Decodes one line, without its end; the first one without a byte order mark.

    Args:
        line: bytes.
        path: path of its file.
        number: int. Number of the line, from 1.

    Returns:
        str.

    Raises:
        ValueError: if it is not UTF-8; names file, line and byte.
    """
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}:{number}: not valid UTF-8 (byte 0x{line[error.start]:02x} at "
            f"position {error.start} of the line, {error.reason}). Convert the file to "
            f"UTF-8 first, such as with: iconv -f LATIN1 -t UTF-8 {path}"
        ) from error
