//! A line that a server answers: a client reads it or gives the connection up, and never panics.
#![no_main]

use kunci_api::native::{Answer, Outcome};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(answer) = Answer::parse(bytes) else { return };
    if let Outcome::Error(refused) = &answer.outcome {
        let _ = refused.code();
    }
    let mut text = Vec::new();
    answer.write(&mut text);
    let text = text.strip_suffix(b"\n").expect("a line ends");
    // A field that is there twice, or not known, is left out, so the written line isn't longer but for its coding.
    if text.len() <= kunci_api::native::LINE_BYTES_MAX {
        assert_eq!(Answer::parse(text), Ok(answer));
    }
});
