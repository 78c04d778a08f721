//! Reads bzip2: some agents come as `.tar.bz2`.
//!
//! A stream is a row of blocks of up to 900 KB. A block was run-length coded, sorted (Burrows and Wheeler), moved to the front,
//! run-length coded again and written with up to six Huffman tables that take turns; here it all goes backwards.

use std::io::{self, Read};

use super::invalid;

const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
const LONGEST_CODE: usize = 20;
/// Symbols that are read with one table before the next one is chosen.
const GROUP: usize = 50;

/// The decoded bytes of a stream, or of several, one behind the other.
pub(super) struct Decoder<R> {
    bits: Bits<R>,
    /// How long blocks of this stream may be; `None` between streams.
    longest: Option<usize>,
    /// The block that is being handed out.
    block: Vec<u8>,
    given: usize,
    streams: usize,
    sum: u32,
    /// The sorted block: the byte in the low eight bits, where to go next above; kept for the next block.
    sorted: Vec<u32>,
}

impl<R: Read> Decoder<R> {
    pub(super) fn new(from: R) -> Decoder<R> {
        Decoder {
            bits: Bits::new(from),
            longest: None,
            block: Vec::new(),
            given: 0,
            streams: 0,
            sum: 0,
            sorted: Vec::new(),
        }
    }

    /// Fills `block`; false at the end of everything.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            let Some(longest) = self.longest else {
                if !self.begin()? {
                    return Ok(false);
                }
                continue;
            };
            match self.bits.take(24)? << 24 | self.bits.take(24)? {
                BLOCK => {
                    self.read_block(longest)?;
                    return Ok(true);
                }
                END => {
                    if self.bits.take(32)? as u32 != self.sum {
                        return Err(damaged());
                    }
                    self.bits.align();
                    self.longest = None;
                }
                _ => return Err(damaged()),
            }
        }
    }

    /// The head of a stream; false if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        let first = match self.bits.take(8) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.streams > 0 => {
                return Ok(false);
            }
            first => first?,
        };
        let head = first << 24 | self.bits.take(24)?;
        let level = head & 0xff;
        if head >> 8 != 0x42_5a68 || !(0x31..=0x39).contains(&level) {
            // What is behind the last stream is padding.
            return if self.streams > 0 { Ok(false) } else { Err(invalid("it is not bzip2")) };
        }
        self.streams += 1;
        self.sum = 0;
        self.longest = Some((level - 0x30) as usize * 100_000);
        Ok(true)
    }

    fn read_block(&mut self, longest: usize) -> io::Result<()> {
        let wanted = self.bits.take(32)? as u32;
        if self.bits.take(1)? == 1 {
            return Err(invalid("it was made by a bzip2 that is too old"));
        }
        let origin = self.bits.take(24)? as usize;
        self.sorted.clear();
        read_symbols(&mut self.bits, longest, &mut self.sorted)?;
        let sum = unsort(&mut self.sorted, origin, &mut self.block)?;
        self.given = 0;
        if sum != wanted {
            return Err(damaged());
        }
        self.sum = self.sum.rotate_left(1) ^ sum;
        Ok(())
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // A block may be empty.
        while self.given == self.block.len() {
            if !self.advance()? {
                return Ok(0);
            }
        }
        let rest = self.block.get(self.given..).unwrap_or_default();
        let count = rest.len().min(out.len());
        if let (Some(out), Some(rest)) = (out.get_mut(..count), rest.get(..count)) {
            out.copy_from_slice(rest);
        }
        self.given += count;
        Ok(count)
    }
}

fn damaged() -> io::Error {
    invalid("it is damaged")
}

/// Reads the symbols of a block and undoes the second run-length code and the moves to the front.
fn read_symbols(bits: &mut Bits<impl Read>, longest: usize, out: &mut Vec<u32>) -> io::Result<()> {
    let mut front = alphabet(bits)?;
    let symbols = front.len() + 2;
    let tables = bits.take(3)? as usize;
    let selectors = bits.take(15)? as usize;
    if front.is_empty() || !(2..=6).contains(&tables) || selectors == 0 {
        return Err(damaged());
    }
    let mut order: Vec<u8> = (0..tables as u8).collect();
    let mut chosen: Vec<u8> = Vec::with_capacity(selectors);
    for _ in 0..selectors {
        let mut at = 0;
        while bits.take(1)? == 1 {
            at += 1;
        }
        if at >= order.len() {
            return Err(damaged());
        }
        order.get_mut(..=at).ok_or_else(damaged)?.rotate_right(1);
        chosen.extend(order.first());
    }
    let codes = (0..tables).map(|_| Code::read(bits, symbols)).collect::<io::Result<Vec<_>>>()?;
    let end = symbols - 1;
    let (mut run, mut weight) = (0_usize, 1_usize);
    let mut groups = chosen.iter();
    loop {
        let code = groups.next().and_then(|at| codes.get(usize::from(*at))).ok_or_else(damaged)?;
        for _ in 0..GROUP {
            let symbol = code.next(bits)?;
            // 0 and 1 are the digits of how often the front one is repeated, worth 1 and 2, the lowest first.
            if symbol < 2 {
                run = run.saturating_add(weight << symbol);
                weight = weight.checked_mul(2).filter(|weight| *weight <= 1 << 22).ok_or_else(damaged)?;
                continue;
            }
            if run > 0 {
                let byte = front.first().copied().unwrap_or_default();
                if run > longest - out.len() {
                    return Err(damaged());
                }
                out.resize(out.len() + run, u32::from(byte));
                (run, weight) = (0, 1);
            }
            if symbol == end {
                return Ok(());
            }
            if out.len() == longest {
                return Err(damaged());
            }
            front.get_mut(..symbol).ok_or_else(damaged)?.rotate_right(1);
            out.extend(front.first().map(|byte| u32::from(*byte)));
        }
    }
}

/// The bytes that occur, in order: a map of sixteens, and a map of each sixteen that occurs.
fn alphabet(bits: &mut Bits<impl Read>) -> io::Result<Vec<u8>> {
    let sixteens = bits.take(16)?;
    let mut bytes = Vec::new();
    for high in 0..16_u8 {
        if sixteens >> (15 - high) & 1 == 1 {
            let map = bits.take(16)?;
            bytes.extend((0..16_u8).filter(|low| map >> (15 - low) & 1 == 1).map(|low| high << 4 | low));
        }
    }
    Ok(bytes)
}

/// Undoes the sorting and the first run-length code. Gives the checksum of what comes out.
fn unsort(sorted: &mut [u32], origin: usize, out: &mut Vec<u8>) -> io::Result<u32> {
    out.clear();
    if sorted.is_empty() {
        return Ok(0);
    }
    if origin >= sorted.len() {
        return Err(damaged());
    }
    let mut starts = [0_u32; 256];
    for entry in sorted.iter() {
        if let Some(count) = starts.get_mut((entry & 0xff) as usize) {
            *count += 1;
        }
    }
    let mut total = 0;
    for start in &mut starts {
        (*start, total) = (total, total + *start);
    }
    for at in 0..sorted.len() {
        let byte = (sorted.get(at).copied().unwrap_or_default() & 0xff) as usize;
        let Some(place) = starts.get_mut(byte) else { continue };
        if let Some(entry) = sorted.get_mut(*place as usize) {
            *entry |= (at as u32) << 8;
        }
        *place += 1;
    }
    let mut sum = Sum::default();
    let mut at = sorted.get(origin).copied().unwrap_or_default() >> 8;
    let (mut last, mut same) = (None, 0);
    for _ in 0..sorted.len() {
        let entry = sorted.get(at as usize).copied().unwrap_or_default();
        at = entry >> 8;
        let byte = (entry & 0xff) as u8;
        if same == 4 {
            // Four of a kind are followed by how many more there are.
            let last = last.unwrap_or_default();
            for _ in 0..byte {
                sum.add(last);
            }
            out.resize(out.len() + usize::from(byte), last);
            same = 0;
            continue;
        }
        same = if last == Some(byte) { same + 1 } else { 1 };
        last = Some(byte);
        sum.add(byte);
        out.push(byte);
    }
    Ok(!sum.0)
}

/// The checksum: CRC-32, the highest bit first.
struct Sum(u32);

impl Default for Sum {
    fn default() -> Sum {
        Sum(u32::MAX)
    }
}

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut value = (at as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000_0000 == 0 { value << 1 } else { value << 1 ^ 0x04c1_1db7 };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
};

impl Sum {
    fn add(&mut self, byte: u8) {
        let at = (self.0 >> 24) as u8 ^ byte;
        self.0 = self.0 << 8 ^ CRC.get(usize::from(at)).copied().unwrap_or_default();
    }
}

/// Codes up to this length are found by one look.
const SHORT: u32 = 10;

/// A Huffman code in its canonical form: per length, the first code, how many there are, and where their symbols begin.
struct Code {
    lengths: [(u64, u64, usize); LONGEST_CODE + 1],
    symbols: Vec<u16>,
    /// By the next bits, the symbol and, in the low four bits, the length of its code; 0 if the code is longer.
    short: Vec<u16>,
}

impl Code {
    fn read(bits: &mut Bits<impl Read>, symbols: usize) -> io::Result<Code> {
        let mut length = bits.take(5)? as usize;
        let mut lengths = Vec::with_capacity(symbols);
        for _ in 0..symbols {
            while bits.take(1)? == 1 {
                length = if bits.take(1)? == 0 { length + 1 } else { length.wrapping_sub(1) };
                if !(1..=LONGEST_CODE).contains(&length) {
                    return Err(damaged());
                }
            }
            if !(1..=LONGEST_CODE).contains(&length) {
                return Err(damaged());
            }
            lengths.push(length);
        }
        let mut code = Code {
            lengths: [(0, 0, 0); LONGEST_CODE + 1],
            symbols: Vec::with_capacity(symbols),
            short: vec![0; 1 << SHORT],
        };
        let mut first = 0;
        for length in 1..=LONGEST_CODE {
            let start = code.symbols.len();
            let of_length = lengths.iter().enumerate().filter(|(_, of)| **of == length);
            code.symbols.extend(of_length.map(|(symbol, _)| symbol as u16));
            let count = (code.symbols.len() - start) as u64;
            if let Some(entry) = code.lengths.get_mut(length) {
                *entry = (first, count, start);
            }
            code.shorten(first, start, length as u32);
            first = (first + count) << 1;
        }
        Ok(code)
    }

    /// Enters the codes of one length where their bits lead.
    fn shorten(&mut self, first: u64, start: usize, length: u32) {
        if length > SHORT {
            return;
        }
        let free = SHORT - length;
        for (code, symbol) in (first..).zip(self.symbols.iter().skip(start)) {
            let from = (code << free) as usize;
            // A damaged table can hold more codes than there are.
            for entry in self.short.iter_mut().skip(from).take(1 << free) {
                *entry = symbol << 4 | length as u16;
            }
        }
    }

    fn next(&self, bits: &mut Bits<impl Read>) -> io::Result<usize> {
        let entry = self.short.get(bits.peek(SHORT)? as usize).copied().unwrap_or_default();
        if entry != 0 {
            bits.take(u32::from(entry & 15))?;
            return Ok(usize::from(entry >> 4));
        }
        let mut value = 0;
        for (first, count, start) in self.lengths.iter().skip(1) {
            value = value << 1 | bits.take(1)?;
            if let Some(at) = value.checked_sub(*first).filter(|at| at < count) {
                return self
                    .symbols
                    .get(start + at as usize)
                    .map(|symbol| usize::from(*symbol))
                    .ok_or_else(damaged);
            }
        }
        Err(damaged())
    }
}

/// Bits, the highest of a byte first.
struct Bits<R> {
    from: R,
    input: Vec<u8>,
    /// How much of `input` has been taken.
    at: usize,
    buffer: u64,
    count: u32,
}

impl<R: Read> Bits<R> {
    fn new(from: R) -> Bits<R> {
        Bits { from, input: Vec::new(), at: 0, buffer: 0, count: 0 }
    }

    /// Sees to it that there are as many bits as can be.
    fn fill(&mut self) -> io::Result<()> {
        while self.count <= 56 {
            let Some(byte) = self.input.get(self.at) else {
                self.input.resize(16 << 10, 0);
                let length = self.from.read(&mut self.input)?;
                self.input.truncate(length);
                self.at = 0;
                if length == 0 {
                    return Ok(());
                }
                continue;
            };
            self.buffer = self.buffer << 8 | u64::from(*byte);
            self.count += 8;
            self.at += 1;
        }
        Ok(())
    }

    /// Up to 32 of them.
    fn take(&mut self, wanted: u32) -> io::Result<u64> {
        if self.count < wanted {
            self.fill()?;
        }
        self.count = self.count.checked_sub(wanted).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(self.buffer >> self.count & ((1 << wanted) - 1))
    }

    /// The same, without taking them; behind the end there are zeros.
    fn peek(&mut self, wanted: u32) -> io::Result<u64> {
        if self.count < wanted {
            self.fill()?;
        }
        let mask = (1 << wanted) - 1;
        Ok(match self.count.checked_sub(wanted) {
            Some(rest) => self.buffer >> rest & mask,
            None => self.buffer << (wanted - self.count) & mask,
        })
    }

    /// Drops what is left of the byte.
    fn align(&mut self) {
        self.count -= self.count % 8;
    }
}
