"""Runs a command on a terminal of N columns: terminal.py N COMMAND... Prints what it wrote, with a newline for
each return to the start of the line and without colours. Must not know: the command."""
import fcntl
import os
import pty
import re
import struct
import sys
import termios


def main():
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
        os.execvp(sys.argv[2], sys.argv[2:])
    output = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the command closed its end
            break
        if not piece:
            break
        output += piece
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.decode())
    sys.stdout.write(text.replace("\r\n", "\n").replace("\r\x1b[K", "\n"))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
