//! A line that a client sends: read or refused, never a panic; and what was read means the same when it is written again.
#![no_main]

use kunci_api::native::{LINE_BYTES_MAX, Line};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Line::parse(bytes) {
        Ok(line) => {
            let mut text = Vec::new();
            line.write(&mut text);
            let text = text.strip_suffix(b"\n").expect("a line ends");
            assert!(!text.contains(&b'\n'));
            // A secret may be longer once it is coded.
            if text.len() <= LINE_BYTES_MAX {
                assert_eq!(Line::parse(text), Ok(line));
            }
        }
        Err(bad) => {
            assert!(!bad.to_string().is_empty());
            assert!(bad.subject.is_none() || std::str::from_utf8(bytes).is_ok());
        }
    }
});
