#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::tree::{Tree, inside};
use super::{ArchiveKind, MultiBzDecoder, tar, zip};

/// A directory of this test that is gone afterwards.
struct Temp(PathBuf);

impl Temp {
    fn new(name: &str) -> Temp {
        let dir = std::env::temp_dir().join(format!("attache-archive-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Temp(dir)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// One entry of a tar archive.
fn member(name: &str, kind: u8, link: &str, content: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..107].copy_from_slice(b"0000755");
    block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    block[156] = kind;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut bytes = block.to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn untar(members: &[Vec<u8>], into: &Path) -> std::io::Result<()> {
    let mut tree = Tree::new(into).unwrap();
    tar::unpack(Cursor::new(members.concat()), &mut tree)?;
    tree.finish()
}

#[test]
fn a_tar_archive_with_all_that_programs_come_with() {
    let temp = Temp::new("tar");
    let long = format!("deep/{}/tool", "d".repeat(120));
    let record = |text: String| format!("{} {text}\n", text.len() + 5).into_bytes();
    let members = [
        member("bin/", b'5', "", b""),
        member("bin/tool", b'0', "", b"#!/bin/sh\n"),
        member("bin/same", b'1', "bin/tool", b""),
        member("run", b'2', "bin/tool", b""),
        member("././@LongLink", b'L', "", long.as_bytes()),
        member("cut", b'0', "", b"gnu"),
        member("pax", b'x', "", &record(format!("path={long}2"))),
        member("cut", b'0', "", b"pax"),
        vec![0; 1024],
    ];
    untar(&members, &temp.0).unwrap();
    assert_eq!(fs::read(temp.0.join("bin/same")).unwrap(), b"#!/bin/sh\n");
    assert_eq!(fs::read(temp.0.join("run")).unwrap(), b"#!/bin/sh\n");
    assert_eq!(fs::read(temp.0.join(&long)).unwrap(), b"gnu");
    assert_eq!(fs::read(temp.0.join(format!("{long}2"))).unwrap(), b"pax");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(temp.0.join("bin/tool")).unwrap().permissions().mode() & 0o7777, 0o755);
    }
}

#[test]
fn nothing_leads_out_of_the_directory() {
    let temp = Temp::new("out");
    let root = temp.0.join("root");
    let cases: &[&[Vec<u8>]] = &[
        &[member("../evil", b'0', "", b"x")],
        &[member("/evil", b'0', "", b"x")],
        &[member("a/../../evil", b'0', "", b"x")],
        &[member("out", b'2', "../..", b"")],
        &[member("out", b'2', "/etc", b"")],
        // Each looks as if it stayed inside, until links are followed.
        &[member("a/b/here", b'2', ".", b""), member("up", b'2', "a/b/here/../../..", b"")],
        // A file behind a link: the link is made last, so the file finds a directory, and the link
        // does not.
        &[member("d", b'2', "..", b""), member("d/evil", b'0', "", b"x")],
        &[member("hard", b'1', "../../etc/passwd", b"")],
        &[member("fifo", b'6', "", b"")],
        &[member("device", b'3', "", b"")],
    ];
    for members in cases {
        assert!(untar(members, &root).is_err());
        assert!(!temp.0.join("evil").exists() && !root.join("../evil").exists());
    }
}

#[test]
fn a_file_is_not_written_through_a_link() {
    let temp = Temp::new("through");
    let members =
        [member("d", b'0', "", b"first"), member("l", b'2', "d", b""), member("l", b'0', "", b"second")];
    untar(&members, &temp.0).unwrap();
    assert_eq!(fs::read(temp.0.join("d")).unwrap(), b"first");
}

#[test]
fn damaged_archives_are_reported() {
    let temp = Temp::new("damaged");
    let whole = member("tool", b'0', "", &[7; 2000]);
    assert!(untar(&[whole[..1500].to_vec()], &temp.0).is_err());
    assert!(untar(&[vec![1; 512]], &temp.0).is_err());
    assert!(untar(&[], &temp.0).is_err());
    let mut tree = Tree::new(&temp.0).unwrap();
    assert!(zip::unpack(Cursor::new(b"<html>not found</html>".to_vec()), &mut tree).is_err());
}

#[test]
fn names_stay_below_the_root() {
    assert_eq!(inside(b"./a//b/.").unwrap(), Path::new("a/b"));
    for name in [&b"a/../b"[..], b"..", b"/a", b"a\0b", b"\xff"] {
        assert!(inside(name).is_err(), "{name:?}");
    }
}

/// A zip archive with one stored and one deflated file.
fn zipped(crc_of_first: u32) -> Vec<u8> {
    let packed = {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&[b'a'; 5000]).unwrap();
        encoder.finish().unwrap()
    };
    let crc = |bytes: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(bytes);
        crc.sum()
    };
    let files = [
        ("bin/tool", 0_u16, b"tool".to_vec(), 4_u32, crc_of_first, 0o100_755_u32),
        ("data", 8, packed, 5000, crc(&[b'a'; 5000]), 0o100_644),
        ("link", 0, b"bin/tool".to_vec(), 8, crc(b"bin/tool"), 0o120_777),
    ];
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, method, content, size, crc, mode) in &files {
        let at = archive.len() as u32;
        let middle = |out: &mut Vec<u8>| {
            out.extend(20_u16.to_le_bytes());
            out.extend(0_u16.to_le_bytes());
            out.extend(method.to_le_bytes());
            out.extend([0; 4]);
            out.extend(crc.to_le_bytes());
            out.extend((content.len() as u32).to_le_bytes());
            out.extend(size.to_le_bytes());
            out.extend((name.len() as u16).to_le_bytes());
            out.extend(0_u16.to_le_bytes());
        };
        archive.extend(b"PK\x03\x04");
        middle(&mut archive);
        archive.extend(name.as_bytes());
        archive.extend(content);
        directory.extend(b"PK\x01\x02");
        directory.extend(0x0314_u16.to_le_bytes());
        middle(&mut directory);
        directory.extend([0; 6]);
        directory.extend((mode << 16).to_le_bytes());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let start = archive.len() as u32;
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06");
    archive.extend([0; 4]);
    archive.extend([3, 0, 3, 0]);
    archive.extend((directory.len() as u32).to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

#[test]
fn a_zip_archive() {
    let temp = Temp::new("zip");
    let mut crc = flate2::Crc::new();
    crc.update(b"tool");
    let mut tree = Tree::new(&temp.0).unwrap();
    zip::unpack(Cursor::new(zipped(crc.sum())), &mut tree).unwrap();
    tree.finish().unwrap();
    assert_eq!(fs::read(temp.0.join("link")).unwrap(), b"tool");
    assert_eq!(fs::read(temp.0.join("data")).unwrap(), [b'a'; 5000]);
    // A wrong checksum.
    let mut tree = Tree::new(&temp.0).unwrap();
    assert!(zip::unpack(Cursor::new(zipped(1)), &mut tree).is_err());
}

#[test]
fn bzip2_as_others_write_it() {
    // `printf 'hello hello hello\n' | bzip2`
    let packed: &[u8] = &[
        66, 90, 104, 57, 49, 65, 89, 38, 83, 89, 229, 181, 243, 9, 0, 0, 4, 81, 0, 0, 16, 64, 0, 2, 68, 160,
        0, 33, 181, 24, 12, 2, 144, 105, 194, 163, 11, 185, 34, 156, 40, 72, 114, 218, 249, 132, 128,
    ];
    let read = |bytes: &[u8]| {
        let mut text = Vec::new();
        MultiBzDecoder::new(bytes).read_to_end(&mut text).map(|_| text)
    };
    assert_eq!(read(packed).unwrap(), b"hello hello hello\n");
    // Two streams, one behind the other, are one text.
    assert_eq!(read(&[packed, packed].concat()).unwrap(), b"hello hello hello\nhello hello hello\n");
    assert!(read(&packed[..30]).is_err());
    let mut wrong = packed.to_vec();
    wrong[31] ^= 4;
    assert!(read(&wrong).is_err());
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

#[test]
fn whatever_is_wrong_with_an_archive_nothing_happens_outside() {
    let temp = Temp::new("random");
    let tarred = [
        member("bin/", b'5', "", b""),
        member("bin/tool", b'0', "", b"#!/bin/sh\n"),
        member("run", b'2', "bin/tool", b""),
        member("pax", b'x', "", b"15 path=a/b/c\n"),
        member("cut", b'0', "", b"pax"),
    ]
    .concat();
    let packed = zipped(1);
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..400 {
        let root = temp.0.join("root");
        let mut bytes = if round % 2 == 0 { tarred.clone() } else { packed.clone() };
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(bytes.len());
            bytes[at] = dice.roll(256) as u8;
        }
        let mut tree = Tree::new(&root).unwrap();
        // It may work or fail; it must do no more than that.
        let _ = match round % 2 {
            // The sum of each header is made right again, or little would get past it.
            0 => tar::unpack(Cursor::new(repaired(bytes)), &mut tree).and_then(|()| tree.finish()),
            _ => zip::unpack(Cursor::new(bytes), &mut tree).and_then(|()| tree.finish()),
        };
        let outside: Vec<_> =
            fs::read_dir(&temp.0).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(outside, ["root"]);
        fs::remove_dir_all(&root).unwrap();
    }
}

fn repaired(mut archive: Vec<u8>) -> Vec<u8> {
    for block in archive.chunks_mut(512).filter(|block| block.len() == 512 && &block[257..262] == b"ustar") {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    }
    archive
}

#[test]
fn kinds_by_their_names() {
    assert_eq!(ArchiveKind::of("https://example.com/a.tar.gz?x=1").unwrap(), ArchiveKind::TarGz);
    assert_eq!(ArchiveKind::of("a.TGZ").unwrap(), ArchiveKind::TarGz);
    assert_eq!(ArchiveKind::of("a.tar.bz2").unwrap(), ArchiveKind::TarBz2);
    assert_eq!(ArchiveKind::of("a-linux-amd64").unwrap(), ArchiveKind::Program);
    assert!(ArchiveKind::of("a.dmg").is_err() && ArchiveKind::of("a.tar.xz").is_err());
}
