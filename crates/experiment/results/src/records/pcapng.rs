//! Writes a capture file with one interface, which Wireshark can open.
//!
//! Blocks and options are those of the pcapng specification (draft-ietf-opsawg-pcapng), in
//! little-endian byte order. Only the blocks for a capture of one interface are supported: a
//! section header (section 4.1), an interface description (4.2), and enhanced packets (4.3).

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// A number that shows a reader the byte order of the section.
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// The section's length is not given.
const UNKNOWN_LENGTH: u64 = u64::MAX;

/// The link type of packets that begin with their IPv4 or IPv6 header (`LINKTYPE_RAW`).
const RAW_IP: u16 = 101;

// Options (sections 3.5, 4.1, 4.2 and 4.3).
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// Times are in units of 10 to the minus 9 seconds.
const NANOSECONDS: u8 = 9;

/// The direction of a packet at the host whose packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The packet arrived.
    In,
    /// The packet left.
    Out,
}

/// Writes the section header and the description of the only interface.
pub(super) fn begin(file: &mut Vec<u8>, application: &str, interface: &str, comment: &str) {
    block(file, SECTION_HEADER, |body| {
        body.extend(BYTE_ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]); // version 1.0
        body.extend(UNKNOWN_LENGTH.to_le_bytes());
        option(body, SECTION_APPLICATION, application.as_bytes());
        option(body, END_OF_OPTIONS, &[]);
    });
    block(file, INTERFACE_DESCRIPTION, |body| {
        body.extend(RAW_IP.to_le_bytes());
        body.extend([0; 2]); // reserved
        body.extend([0; 4]); // no limit to the captured length
        option(body, COMMENT, comment.as_bytes());
        option(body, INTERFACE_NAME, interface.as_bytes());
        option(body, INTERFACE_RESOLUTION, &[NANOSECONDS]);
        option(body, END_OF_OPTIONS, &[]);
    });
}

/// Adds a packet of `length` bytes whose first bytes are `captured`.
pub(super) fn packet(file: &mut Vec<u8>, at_ns: u64, way: Way, captured: &[u8], length: u32) {
    block(file, ENHANCED_PACKET, |body| {
        body.extend([0; 4]); // the first interface
        body.extend(((at_ns >> 32) as u32).to_le_bytes());
        body.extend((at_ns as u32).to_le_bytes());
        body.extend((captured.len() as u32).to_le_bytes()); // far below 4 GB
        body.extend(length.to_le_bytes());
        body.extend(captured);
        pad(body);
        let direction: u32 = match way {
            Way::In => 1,
            Way::Out => 2,
        };
        option(body, PACKET_FLAGS, &direction.to_le_bytes());
        option(body, END_OF_OPTIONS, &[]);
    });
}

/// A block (section 3.1): its type, its length, `fill`, and its length again.
fn block(file: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend(kind.to_le_bytes());
    file.extend([0; 4]);
    fill(file);
    let length = ((file.len() - start + 4) as u32).to_le_bytes(); // far below 4 GB
    file[start + 4..start + 8].copy_from_slice(&length);
    file.extend(length);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes()); // short texts
    body.extend(value);
    pad(body);
}

/// Pads to a multiple of 4 bytes, because each block and each option begins at such a place in the
/// file. The buffer always begins with a block, so places in the buffer can be counted instead.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_the_specification_draws_them() {
        let mut file = Vec::new();
        begin(&mut file, "wakeai 1", "a", "b");
        let section = [
            &[0x0A, 0x0D, 0x0D, 0x0A, 44, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0][..],
            &[0xFF; 8],
            &[4, 0, 8, 0],
            b"wakeai 1",
            &[0, 0, 0, 0, 44, 0, 0, 0],
        ];
        let interface = [
            &[1, 0, 0, 0, 48, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0][..],
            &[1, 0, 1, 0, b'b', 0, 0, 0, 2, 0, 1, 0, b'a', 0, 0, 0],
            &[9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0],
        ];
        assert_eq!(file, [section.concat(), interface.concat()].concat());
        file.clear();
        packet(&mut file, 0x1_0000_0002, Way::Out, &[7; 5], 1_500);
        let expected = [
            &[6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0][..],
            &[5, 0, 0, 0, 0xDC, 5, 0, 0, 7, 7, 7, 7, 7, 0, 0, 0],
            &[2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0],
        ];
        assert_eq!(file, expected.concat());
    }
}
