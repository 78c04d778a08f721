//! Frame headers, masks and close payloads: bytes in, values out, no I/O.

use super::socket::Role;
use std::fmt;

/// The longest header: two bytes, a length of eight, a mask of four.
pub const MAX_HEADER: usize = 14;
/// The longest payload of a control frame.
pub const MAX_CONTROL: usize = 125;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A further fragment of a message.
    Continuation,
    /// A text message, or its first fragment.
    Text,
    /// A binary message, or its first fragment.
    Binary,
    /// The closing handshake.
    Close,
    /// A question for a pong.
    Ping,
    /// The answer to a ping.
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Opcode> {
        Some(match bits {
            0x0 => Opcode::Continuation,
            0x1 => Opcode::Text,
            0x2 => Opcode::Binary,
            0x8 => Opcode::Close,
            0x9 => Opcode::Ping,
            0xA => Opcode::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Opcode::Continuation => 0x0,
            Opcode::Text => 0x1,
            Opcode::Binary => 0x2,
            Opcode::Close => 0x8,
            Opcode::Ping => 0x9,
            Opcode::Pong => 0xA,
        }
    }

    /// Whether it is a close, ping or pong frame.
    pub fn is_control(self) -> bool {
        matches!(self, Opcode::Close | Opcode::Ping | Opcode::Pong)
    }
}

/// The header of a frame.
///
/// ```
/// use attache_http::ws::frame::{Header, Opcode, read_header, write_header};
///
/// let header = Header { is_final: true, opcode: Opcode::Text, mask: None, len: 5 };
/// let mut bytes = Vec::new();
/// write_header(&mut bytes, &header);
/// assert_eq!(bytes, [0x81, 5]);
/// assert_eq!(read_header(&bytes), Ok(Some((header, 2))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the message ends with this frame.
    pub is_final: bool,
    /// The kind.
    pub opcode: Opcode,
    /// The mask of the payload; clients mask, servers do not.
    pub mask: Option<[u8; 4]>,
    /// The length of the payload.
    pub len: u64,
}

/// A violation of RFC 6455 or of a limit, which ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A reserved bit is set.
    ReservedBits,
    /// The opcode is unknown.
    Opcode,
    /// A control frame is longer than 125 bytes.
    LongControl,
    /// A control frame is fragmented.
    FragmentedControl,
    /// The length has more than 63 bits.
    Length,
    /// A mask is missing, or there is one in a frame of a server.
    Mask,
    /// A continuation frame has no message.
    Continuation,
    /// A message begins within another one.
    Interleaved,
    /// The message has more than this many bytes.
    TooBig(u64),
}

impl Violation {
    /// Returns the status for the peer.
    pub(super) fn code(self) -> u16 {
        match self {
            Violation::TooBig(_) => 1009,
            _ => 1002,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Violation::TooBig(limit) => return write!(f, "a message may have {limit} bytes"),
            Violation::ReservedBits => "a frame has reserved bits set",
            Violation::Opcode => "a frame has an unknown opcode",
            Violation::LongControl => "a control frame is longer than 125 bytes",
            Violation::FragmentedControl => "a control frame is fragmented",
            Violation::Length => "the length of a frame is invalid",
            Violation::Mask => "a frame of a client must be masked, and one of a server must not",
            Violation::Continuation => "a continuation frame has no message",
            Violation::Interleaved => "a message begins within another one",
        })
    }
}

/// Reads a header. Returns it with its length in bytes, or `None` if it is incomplete.
///
/// # Errors
/// The header is invalid by itself.
pub fn read_header(bytes: &[u8]) -> Result<Option<(Header, usize)>, Violation> {
    let &[first, second, ..] = bytes else { return Ok(None) };
    // WS-14, WS-20: no extension is ever agreed on.
    if first & 0x70 != 0 {
        return Err(Violation::ReservedBits);
    }
    let opcode = Opcode::from_bits(first & 0x0F).ok_or(Violation::Opcode)?;
    let is_final = first & 0x80 != 0;
    let (len, used) = match second & 0x7F {
        126 => match bytes.get(2..4).and_then(|bytes| bytes.try_into().ok()) {
            Some(len) => (u64::from(u16::from_be_bytes(len)), 4),
            None => return Ok(None),
        },
        127 => match bytes.get(2..10).and_then(|bytes| bytes.try_into().ok()) {
            Some(len) => (u64::from_be_bytes(len), 10),
            None => return Ok(None),
        },
        short => (u64::from(short), 2),
    };
    if len > i64::MAX as u64 {
        return Err(Violation::Length);
    }
    if opcode.is_control() && len > MAX_CONTROL as u64 {
        return Err(Violation::LongControl);
    }
    if opcode.is_control() && !is_final {
        return Err(Violation::FragmentedControl);
    }
    let (mask, used) = match second & 0x80 != 0 {
        false => (None, used),
        true => match bytes.get(used..used + 4).and_then(|bytes| bytes.try_into().ok()) {
            Some(mask) => (Some(mask), used + 4),
            None => return Ok(None),
        },
    };
    Ok(Some((Header { is_final, opcode, mask, len }, used)))
}

/// Appends a header.
pub fn write_header(out: &mut Vec<u8>, header: &Header) {
    let masked = if header.mask.is_some() { 0x80 } else { 0 };
    out.push(header.opcode.bits() | if header.is_final { 0x80 } else { 0 });
    match header.len {
        len @ ..=125 => out.push(masked | len as u8),
        len @ ..=0xFFFF => {
            out.push(masked | 126);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(masked | 127);
            out.extend_from_slice(&len.to_be_bytes());
        }
    }
    if let Some(mask) = header.mask {
        out.extend_from_slice(&mask);
    }
}

/// Masks or unmasks bytes that begin at `offset` of the payload.
pub fn apply_mask(bytes: &mut [u8], mask: [u8; 4], offset: usize) {
    let mut mask = mask;
    mask.rotate_left(offset % 4);
    let word = u32::from_ne_bytes(mask);
    let wide = u64::from(word) << 32 | u64::from(word);
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = (u64::from_ne_bytes(*chunk) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// The status with which a peer closed its WebSocket. An error of the link holds it unless it is a
/// normal end.
///
/// ```
/// use attache_http::ws::Close;
///
/// fn is_restart(error: &std::io::Error) -> bool {
///     error.get_ref().and_then(|error| error.downcast_ref::<Close>()).is_some_and(|close| close.code == 1012)
/// }
/// # let close = Close { code: 1012, reason: String::new() };
/// # assert!(is_restart(&std::io::Error::other(close)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Close {
    /// The status of RFC 6455; 1005 if the peer gave none.
    pub code: u16,
    /// The reason for humans.
    pub reason: String,
}

impl std::error::Error for Close {}

impl Close {
    pub(super) fn read(payload: &[u8]) -> Close {
        match payload.split_first_chunk::<2>() {
            Some((code, reason)) => Close {
                code: u16::from_be_bytes(*code),
                reason: String::from_utf8_lossy(reason).into_owned(),
            },
            None => Close { code: 1005, reason: String::new() },
        }
    }

    /// Whether the peer is done, rather than unable or unwilling to continue. A client goes away
    /// when its page is closed, a server when it is stopped.
    pub(super) fn is_normal(&self, role: Role) -> bool {
        matches!(self.code, 1000 | 1005) || self.code == 1001 && role == Role::Server
    }
}

impl fmt::Display for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let meaning = match self.code {
            1001 => " (going away)",
            1002 => " (protocol error)",
            1003 => " (unsupported data)",
            1007 => " (invalid data)",
            1008 => " (refused by a policy or limit)",
            1009 => " (message too big)",
            1011 => " (internal error)",
            1012 => " (restarting)",
            1013 => " (overloaded, try again later)",
            _ => "",
        };
        write!(f, "the peer closed the WebSocket with status {}{meaning}", self.code)?;
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason.escape_debug())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_of_the_specification() {
        // RFC 6455, section 5.7.
        let read = |bytes: &[u8]| read_header(bytes).unwrap().unwrap();
        let text = Header { is_final: true, opcode: Opcode::Text, mask: None, len: 5 };
        assert_eq!(read(b"\x81\x05Hello"), (text, 2));
        let masked = Header { mask: Some([0x37, 0xfa, 0x21, 0x3d]), ..text };
        assert_eq!(read(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), (masked, 6));
        let mut hello = *b"\x7f\x9f\x4d\x51\x58";
        apply_mask(&mut hello, [0x37, 0xfa, 0x21, 0x3d], 0);
        assert_eq!(&hello, b"Hello");
        let long = Header { opcode: Opcode::Binary, len: 65536, ..text };
        assert_eq!(read(b"\x82\x7f\0\0\0\0\0\x01\0\0"), (long, 10));
    }

    #[test]
    fn violations() {
        let read = |bytes: &[u8]| read_header(bytes).unwrap_err();
        assert_eq!(read(b"\xc1\x00"), Violation::ReservedBits);
        assert_eq!(read(b"\x83\x00"), Violation::Opcode);
        assert_eq!(read(b"\x89\x7e\x00\x7e"), Violation::LongControl);
        assert_eq!(read(b"\x09\x00"), Violation::FragmentedControl);
        assert_eq!(read(b"\x81\x7f\x80\0\0\0\0\0\0\0"), Violation::Length);
    }

    proptest! {
        #[test]
        fn headers_survive(
            is_final: bool,
            opcode in prop::sample::select(vec![Opcode::Continuation, Opcode::Text, Opcode::Binary]),
            mask: Option<[u8; 4]>,
            len in prop_oneof![0u64..200, 65_530u64..65_540, 0..=i64::MAX as u64],
        ) {
            let header = Header { is_final, opcode, mask, len };
            let mut bytes = Vec::new();
            write_header(&mut bytes, &header);
            prop_assert!(bytes.len() <= MAX_HEADER);
            prop_assert_eq!(read_header(&bytes).unwrap(), Some((header, bytes.len())));
            for cut in 0..bytes.len() {
                prop_assert_eq!(read_header(&bytes[..cut]).unwrap(), None);
            }
        }

        #[test]
        fn masking_in_pieces(bytes: Vec<u8>, mask: [u8; 4], cut: prop::sample::Index) {
            let cut = cut.index(bytes.len() + 1);
            let mut pieces = bytes.clone();
            apply_mask(&mut pieces[..cut], mask, 0);
            apply_mask(&mut pieces[cut..], mask, cut);
            let slow: Vec<u8> = bytes.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            prop_assert_eq!(pieces, slow);
        }
    }
}
