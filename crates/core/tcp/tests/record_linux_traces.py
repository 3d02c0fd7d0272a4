#!/usr/bin/env python3
"""Shows what this machine's kernel does in the cases of mechanisms/linux_traces.rs.

The kernel's TCP is one end, this program the other: it reads and writes packets of a TUN device in
a network namespace of its own. Nothing outside of that namespace is touched.

    sudo unshare -n python3 record_linux_traces.py [CASE]...

Positions are in segments of 1448 bytes, times in milliseconds since the SYN. A busy host adds to
the times; the kernel's timers tick every 4 ms where it was built with 250 Hz.
"""

import fcntl
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

MSS = 1448
HERE, THERE = "10.9.0.1", "10.9.0.2"
FIN, SYN, ACK = 1, 2, 16
SYN_OPTIONS = b"\2\4" + struct.pack("!H", 1460) + b"\4\2\1\1" + b"\3\3\x0b\1"


def open_tun():
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))  # TUNSETIFF, TUN, NO_PI
    for command in (
        f"ip addr add {HERE}/24 dev tun0",
        "ip link set tun0 up",
        "sysctl -qw net.ipv4.tcp_no_metrics_save=1",
        'sysctl -qw net.ipv4.tcp_rmem="4096 131072 67108864"',
        'sysctl -qw net.ipv4.tcp_wmem="4096 131072 67108864"',
    ):
        subprocess.run(command, shell=True, check=True)
    return tun


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Peer:
    """Our end of a connection with the kernel."""

    def __init__(self, tun, own_port, kernel_port=0):
        self.tun, self.own_port, self.kernel_port = tun, own_port, kernel_port
        self.own_start, self.kernel_start = 1_000_000, None
        self.kernel_clock, self.stamps, self.scale = 0, {}, 0
        self.began = None

    def now_ms(self):
        return (time.time() - self.began) * 1000

    def send(self, flags, seq=0, ack=0, length=0, sacks=(), echo=None, options=b""):
        clock = int(self.now_ms()) + 100
        echo = self.kernel_clock if echo is None else echo
        options += b"\1\1\x08\x0a" + struct.pack("!II", clock, echo & 0xFFFFFFFF)
        at = lambda start, position: (start + 1 + int(position * MSS)) & 0xFFFFFFFF
        if sacks:
            options += b"\1\1\5" + bytes([2 + 8 * len(sacks)])
            for block in sacks:
                options += struct.pack("!II", *(at(self.kernel_start, edge) for edge in block))
        seq = self.own_start if flags & SYN else at(self.own_start, seq)
        ack = at(self.kernel_start, ack) if flags & ACK else 0
        offset = (20 + len(options)) // 4 << 4
        fields = (self.own_port, self.kernel_port, seq, ack, offset, flags, 60_000, 0, 0)
        segment = struct.pack("!HHIIBBHHH", *fields) + options + b"x" * length
        ends = socket.inet_aton(THERE) + socket.inet_aton(HERE)
        check = checksum(ends + struct.pack("!HH", 6, len(segment)) + segment)
        segment = segment[:16] + struct.pack("!H", check) + segment[18:]
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(segment), 1, 0x4000, 64, 6, 0) + ends
        header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
        os.write(self.tun, header + segment)

    def wait_until(self, at_ms):
        """Shows what the kernel sends until then; before it has begun, waits for its SYN."""
        while True:
            left = None if self.began is None else self.began + at_ms / 1000 - time.time()
            ready = select.select([self.tun], [], [], left if left is None else max(left, 0))[0]
            if not ready:
                return
            self.take(os.read(self.tun, 4096))
            if left is None and self.began is not None:
                return

    def wait(self, span_ms):
        self.wait_until(self.now_ms() + span_ms)

    def take(self, packet):
        if packet[0] >> 4 != 4 or packet[9] != 6:
            return
        segment = packet[(packet[0] & 15) * 4 :]
        source, port, seq, ack, offset, flags, window = struct.unpack("!HHIIBBH", segment[:16])
        if port != self.own_port:
            return
        self.began = self.began or time.time()
        options, length = segment[20 : (offset >> 4) * 4], len(segment) - (offset >> 4) * 4
        sacks = self.read_options(options, flags)
        if flags & SYN:
            self.kernel_start, self.kernel_port = seq, source
        place = lambda start, position: ((position - start - 1) & 0xFFFFFFFF) / MSS
        position = -1 if flags & SYN else place(self.kernel_start, seq)
        if length:
            self.stamps[int(position)] = self.kernel_clock
        names = "".join(name for bit, name in ((SYN, "S"), (FIN, "F")) if flags & bit)
        blocks = [f"{place(self.own_start, a):g}..{place(self.own_start, b):g}" for a, b in sacks]
        shown = window if flags & SYN else window << self.scale
        what = f"#{position:g} of {length / MSS:g}" if length or names else ""
        told = "" if flags == SYN else f"ack #{place(self.own_start, ack):g}"
        print(f"  {self.now_ms():9.2f} > {names} {what} {told} window {shown} {' '.join(blocks)}")

    def read_options(self, options, flags):
        sacks, index = [], 0
        while index < len(options) and options[index]:
            if options[index] == 1:
                index += 1
                continue
            kind, size = options[index], options[index + 1]
            value = options[index + 2 : index + size]
            if kind == 3 and flags & SYN:
                self.scale = value[0]
            elif kind == 5:
                edges = struct.unpack(f"!{len(value) // 4}I", value)
                sacks = list(zip(edges[::2], edges[1::2]))
            elif kind == 8:
                self.kernel_clock = struct.unpack("!II", value)[0]
            index += size
        return sacks


class Sender(Peer):
    """Sends to a kernel that reads at once."""

    def __init__(self, tun, port):
        super().__init__(tun, port, 5000)
        self.began = time.time()
        self.send(SYN, options=SYN_OPTIONS)
        self.wait_until(10)
        self.send(ACK)
        self.wait_until(15)

    def data(self, segments, gap_ms):
        for segment in segments:
            print(f"  {self.now_ms():9.2f} < #{segment}")
            self.send(ACK, seq=segment, length=MSS, echo=self.kernel_clock - 10)
            self.wait(gap_ms)

    def fin(self, segment):
        print(f"  {self.now_ms():9.2f} < FIN at #{segment}")
        self.send(FIN | ACK, seq=segment)


class Receiver(Peer):
    """Takes what a kernel with CUBIC sends; the RTT is 100 ms."""

    def __init__(self, tun, port, segments, rtt_ms=100):
        super().__init__(tun, port)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        threading.Thread(target=self.fill, args=(segments,), daemon=True).start()
        self.wait_until(0)
        if rtt_ms is None:
            return
        self.wait_until(rtt_ms)
        self.send(SYN | ACK, options=SYN_OPTIONS)
        self.wait(10)

    def fill(self, segments):
        try:
            self.socket.connect((THERE, self.own_port))
            self.supply(segments)
        except OSError as error:
            print(f"  the kernel's application: {error}")

    def supply(self, segments):
        self.socket.sendall(b"x" * MSS * segments)

    def ack(self, segment, *sacks, echo=None, wait_ms=1.5):
        print(f"  {self.now_ms():9.2f} < ack #{segment} {' '.join(f'{a}..{b}' for a, b in sacks)}")
        self.send(ACK, ack=segment, sacks=sacks, echo=echo)
        self.wait(wait_ms)

    def show(self):
        info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        words = struct.unpack("24I", info[8:104])
        print(
            f"            state {info[1]} unacked {words[4]} sacked {words[5]} lost {words[6]}"
            f" retrans {words[7]} ssthresh {words[17]} cwnd {words[18]}"
        )


def serve():
    listener = socket.create_server((HERE, 5000))
    while True:
        threading.Thread(target=drain, args=(listener.accept()[0],), daemon=True).start()


def drain(connection):
    with connection:
        while connection.recv(1 << 20):
            pass


def begun(tun, port):
    peer = Sender(tun, port)
    peer.data(range(24), 1)
    return peer


def quick_acks(tun):
    begun(tun, 6001).data([24], 60)


def out_of_order(tun):
    peer = begun(tun, 6002)
    peer.wait_until(103)
    peer.data(range(25, 40), 0.05)
    peer.wait(20)
    peer.data([24], 10)


def duplicate(tun):
    peer = begun(tun, 6003)
    peer.wait_until(103)
    peer.data([3], 1)
    peer.data(range(24, 44), 1)


def slow(tun):
    begun(tun, 6004).data(range(24, 30), 30)


def fin(tun):
    peer = Sender(tun, 6005)
    peer.data(range(2), 1)
    peer.fin(2)
    peer.wait(1500)


def recovery(tun):
    peer = Receiver(tun, 7001, 200)
    peer.wait_until(200)
    for end in range(2, 11):
        peer.ack(0, (1, end))
    peer.wait_until(300)
    peer.ack(12)
    peer.show()


def late(tun, port):
    peer = Receiver(tun, port, 200)
    peer.first = peer.stamps[0]
    peer.wait_until(200)
    peer.ack(0, (1, 3))
    peer.ack(0, (1, 4))
    peer.wait_until(205)
    return peer


def undo_by_timestamp(tun):
    peer = late(tun, 7002)
    peer.ack(4, echo=peer.first)
    peer.show()


def undo_by_dsack(tun):
    peer = late(tun, 7003)
    peer.ack(4, echo=peer.stamps[0])
    peer.show()
    peer.wait_until(300)
    peer.ack(4, (0, 1), echo=peer.stamps[0])
    peer.show()


def lost_retransmission(tun):
    peer = Receiver(tun, 7004, 200)
    peer.wait_until(200)
    for end in (3, 4, 5, 10):
        peer.ack(0, (1, end))
    peer.wait_until(312)
    peer.ack(0, (1, 13))
    peer.show()


def probes(tun):
    Receiver(tun, 7005, 1).wait_until(3000)


def idle(tun):
    peer = Receiver(tun, 7006, 40)
    for at_ms, segment in ((200, 10), (300, 30), (400, 40)):
        peer.wait_until(at_ms)
        peer.ack(segment)
    peer.wait_until(750)
    threading.Thread(target=peer.supply, args=(200,), daemon=True).start()
    peer.wait(5)
    peer.show()


def timed_out(tun, port):
    peer = Receiver(tun, port, 200)
    peer.first = peer.stamps[0]
    peer.wait_until(690)
    peer.show()
    return peer


def timeout_new_data_first(tun):
    peer = timed_out(tun, 7007)
    peer.ack(1, echo=peer.stamps[0])
    peer.wait_until(790)
    peer.ack(2, echo=peer.stamps[1])
    peer.show()


def timeout_undo_at_once(tun):
    peer = timed_out(tun, 7008)
    peer.ack(2, echo=peer.stamps[0])
    peer.show()


def timeout_undo_by_timestamp(tun):
    peer = timed_out(tun, 7009)
    peer.ack(1, echo=peer.first)
    peer.show()


def five_losses(tun):
    peer = Receiver(tun, 7010, 400)
    peer.wait_until(200)
    peer.ack(10)
    peer.wait_until(300)
    for end in range(16, 31):
        peer.ack(10, (15, end), wait_ms=1)
    peer.show()
    peer.wait_until(403)
    for segment in range(11, 15):
        peer.ack(segment, (15, 30), echo=peer.stamps[segment - 1], wait_ms=1)
    peer.show()


def syn(tun):
    Receiver(tun, 7011, 1, rtt_ms=None).wait_until(12_000)


CASES = (
    quick_acks, out_of_order, duplicate, slow, fin,
    recovery, undo_by_timestamp, undo_by_dsack, lost_retransmission, probes, idle,
    timeout_new_data_first, timeout_undo_at_once, timeout_undo_by_timestamp, five_losses, syn,
)  # fmt: skip


def main():
    wanted = sys.argv[1:] or [case.__name__ for case in CASES]
    unknown = set(wanted) - {case.__name__ for case in CASES}
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    tun = open_tun()
    threading.Thread(target=serve, daemon=True).start()
    time.sleep(0.1)
    for case in CASES:
        if case.__name__ in wanted:
            print(f"{case.__name__}:")
            case(tun)


if __name__ == "__main__":
    main()
