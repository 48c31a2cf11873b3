# SPDX-License-Identifier: MIT OR Apache-2.0
"""How far apart the links of two hosts turned, by the capture of the wire at one of them.

usage: fleet_skew.py PCAP RUNS
"""
import collections
import statistics
import struct
import sys

SIZE = 250  # of the programs' datagrams
PAUSE = 3  # s; between two runs


def datagrams(path):
    """Time in s, sending host and data of each datagram of the programs: Ethernet in VXLAN."""
    data = open(path, "rb").read()
    at = 24
    while at + 16 <= len(data):
        s, us, length, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + length]
        at += 16 + length
        payload = frame[50 + 42 :]
        if frame[36:38] == b"\x12\xb5" and len(payload) == SIZE:
            yield s + us / 1e6, frame[29], payload


def turns(packets):
    """Of each run: time of the last packet that came once, and of the first that came twice."""
    last, once = None, True
    for (time, data), (_, following) in zip(packets, packets[1:]):
        if last is None or time - last > PAUSE:
            once = True
        if once and data == following:
            yield last, time
            once = False
        last = time


def main():
    hosts = collections.defaultdict(list)
    for time, host, data in datagrams(sys.argv[1]):
        hosts[host].append((time, data))
    a, b = (list(turns(packets)) for packets in hosts.values())
    assert len(a) == len(b) == int(sys.argv[2]), f"{len(a)} and {len(b)} runs were seen"
    least = []
    for (a0, a1), (b0, b1) in zip(a, b):
        # A guest that waits for a CPU shows less.
        least.append(max(a0 - b1, b0 - a1, 0) * 1e3)
        most = max(a1 - b0, b1 - a0) * 1e3
        print(f"    the links turned between {least[-1]:.3f} and {most:.3f} ms apart")
    assert statistics.median(least) <= 1, "more than 1 ms apart"


main()
