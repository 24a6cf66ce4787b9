#!/usr/bin/env python3
"""Connects two network namespaces by a slow link that loses packets, as `tc netem` does, of which not every kernel has the module.
Each namespace gets a device weft0, whose packets this process carries to the other. It runs until it is told to end, and then
prints how many packets it carried and lost. Must not know: what is sent.

Use: lossy_link.py NAMESPACE NAMESPACE SECONDS LOSS SEED    SECONDS in each direction; LOSS: the part that is lost, such as 0.01"""

import collections
import ctypes
import fcntl
import os
import random
import select
import signal
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
PACKET = 65536


def device_in(namespace):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/var/run/netns/{namespace}") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            sys.exit(f"lossy_link.py: {namespace}: {os.strerror(ctypes.get_errno())}")
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"weft0", IFF_TUN | IFF_NO_PI))
    return device


def main():
    first, second, delay, loss = device_in(sys.argv[1]), device_in(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    draw, waiting, carried, lost = random.Random(int(sys.argv[5])), collections.deque(), 0, 0
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    other = {first: second, second: first}
    print("ready", flush=True)
    while not ended:
        pause = max(0, waiting[0][0] - time.monotonic()) if waiting else 0.1
        for device in select.select([first, second], [], [], pause)[0]:
            packet = os.read(device, PACKET)
            if draw.random() < loss:
                lost += 1
            else:
                waiting.append((time.monotonic() + delay, other[device], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, device, packet = waiting.popleft()
            try:
                os.write(device, packet)
                carried += 1
            except OSError:
                lost += 1  # the device is not up yet, or no longer
    print(f"{carried} packets carried, {lost} lost", flush=True)


main()
