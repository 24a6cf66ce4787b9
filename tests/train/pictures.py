"""Images for tests: png writes a PNG file of 8 bits a channel."""

import os
import struct
import zlib


def part(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(path, rows, columns, pixel, colour=True):
    """Writes an image whose channel c of row y and column x is pixel(y, x, c). Makes the folder."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lines = b"".join(b"\0" + bytes(pixel(y, x, c) for x in range(columns) for c in range(3 if colour else 1)) for y in range(rows))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2 if colour else 0, 0, 0, 0)) +
                   part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b""))
