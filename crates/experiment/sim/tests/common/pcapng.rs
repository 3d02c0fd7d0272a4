//! Reads captures: as much of pcapng, IPv4, TCP and UDP as is needed to check them.

/// The code and the value of each option.
pub(crate) type Options = Vec<(u16, Vec<u8>)>;

/// A capture file.
#[derive(Debug, Default)]
pub(crate) struct File {
    /// The type of each block before the packets, and its options.
    pub(crate) headers: Vec<(u32, Options)>,
    pub(crate) packets: Vec<Packet>,
}

/// A packet as it was captured.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) at_ns: u64,
    pub(crate) inbound: bool,
    /// The length of the packet. Its first bytes are `bytes`.
    pub(crate) length: usize,
    pub(crate) bytes: Vec<u8>,
}

fn little(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

fn options(mut bytes: &[u8]) -> Options {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let word = little(bytes);
        let (code, length) = (word as u16, (word >> 16) as usize);
        if code == 0 {
            assert_eq!(bytes, [0; 4], "nothing follows the end of options");
            return found;
        }
        found.push((code, bytes[4..4 + length].to_vec()));
        bytes = &bytes[4 + length.next_multiple_of(4)..];
    }
    panic!("options without an end")
}

/// Reads `path`. Panics where a block is not as it should be.
pub(crate) fn read(path: &std::path::Path) -> File {
    let bytes = std::fs::read(path).unwrap();
    let (mut file, mut rest) = (File::default(), &bytes[..]);
    while !rest.is_empty() {
        let (kind, length) = (little(rest), little(&rest[4..]) as usize);
        assert_eq!((length % 4, little(&rest[length - 4..]) as usize), (0, length));
        let body = &rest[8..length - 4];
        match kind {
            0x0A0D_0D0A => {
                assert_eq!(little(body), 0x1A2B_3C4D);
                file.headers.push((kind, options(&body[16..])));
            }
            1 => {
                assert_eq!(little(body), 101, "packets are raw IP");
                file.headers.push((kind, options(&body[8..])));
            }
            6 => file.packets.push(packet(body)),
            _ => panic!("a block of type {kind}"),
        }
        rest = &rest[length..];
    }
    file
}

fn packet(body: &[u8]) -> Packet {
    assert_eq!(little(body), 0, "there is one interface");
    let at_ns = u64::from(little(&body[4..])) << 32 | u64::from(little(&body[8..]));
    let (captured, length) = (little(&body[12..]) as usize, little(&body[16..]) as usize);
    let flags = options(&body[20 + captured.next_multiple_of(4)..]);
    let (code, direction) = &flags[0];
    assert!(*code == 2 && [1, 2].contains(&little(direction)));
    let bytes = body[20..20 + captured].to_vec();
    Packet { at_ns, inbound: little(direction) == 1, length, bytes }
}

/// Zero where the checksum in `bytes` is right (RFC 1071).
fn checksum(bytes: &[&[u8]]) -> u16 {
    let words = bytes.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) * 256 + u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

impl Packet {
    /// The bytes after the IPv4 header. Lengths and checksums are checked.
    fn transport(&self, protocol: u8) -> &[u8] {
        let (ip, rest) = self.bytes.split_at(20);
        assert_eq!((ip[0], ip[9]), (0x45, protocol));
        assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), self.length);
        assert_eq!(checksum(&[ip]), 0, "of the IPv4 header");
        let length = (self.length as u16 - 20).to_be_bytes();
        // Bytes that are not captured are zero, so they add nothing.
        assert_eq!(checksum(&[&ip[12..], &[0, protocol], &length, rest]), 0, "{self:?}");
        rest
    }

    pub(crate) fn addresses(&self) -> ([u8; 4], [u8; 4]) {
        (self.bytes[12..16].try_into().unwrap(), self.bytes[16..20].try_into().unwrap())
    }

    pub(crate) fn is_tcp(&self) -> bool {
        self.bytes[9] == 6
    }

    /// The ports and the payload of a datagram that was captured whole.
    pub(crate) fn datagram(&self) -> ([u16; 2], &[u8]) {
        let udp = self.transport(17);
        assert_eq!(self.bytes.len(), self.length);
        let field = |at: usize| u16::from_be_bytes([udp[at], udp[at + 1]]);
        assert_eq!(usize::from(field(4)), udp.len());
        ([field(0), field(2)], &udp[8..])
    }

    pub(crate) fn segment(&self) -> Tcp {
        let tcp = self.transport(6);
        let field = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let wide = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
        let header = usize::from(tcp[12] >> 4) * 4;
        assert_eq!(header, tcp.len(), "headers are captured, and nothing else");
        let mut segment = Tcp {
            seq: wide(4),
            ack: wide(8),
            bits: tcp[13],
            window: field(14),
            len: self.length - self.bytes.len(),
            ..Tcp::default()
        };
        segment.take_options(&tcp[20..]);
        segment
    }
}

/// A TCP header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) bits: u8,
    pub(crate) window: u16,
    pub(crate) len: usize,
    pub(crate) mss: Option<u16>,
    pub(crate) scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) sack: Vec<(u32, u32)>,
}

impl Tcp {
    fn take_options(&mut self, mut rest: &[u8]) {
        let wide = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
        while let [kind, more @ ..] = rest {
            if *kind == 1 {
                rest = more;
                continue;
            }
            let (option, after) = rest.split_at(usize::from(more[0]));
            let value = &option[2..];
            match kind {
                2 => self.mss = Some(u16::from_be_bytes([value[0], value[1]])),
                3 => self.scale = Some(value[0]),
                4 => self.sack_permitted = true,
                5 => {
                    let blocks = value.chunks(8).map(|block| (wide(block), wide(&block[4..])));
                    self.sack = blocks.collect();
                }
                8 => self.timestamps = Some((wide(value), wide(&value[4..]))),
                _ => panic!("option {kind}"),
            }
            rest = after;
        }
    }
}
