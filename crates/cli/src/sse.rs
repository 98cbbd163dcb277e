//! Server-Sent Events, as far as kunci sends them.
//!
//! Owns: cutting a byte stream into events. Never: what an event means.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentEvent {
    /// The event id: a revision.
    pub(crate) id: Option<u64>,
    /// The kind, when one was named.
    pub(crate) kind: Option<String>,
    /// The data, its lines joined.
    pub(crate) data: String,
}

/// An event this long is none of ours.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// Cuts what arrives into events.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    pending: Vec<u8>,
}

impl Cutter {
    /// Takes in bytes and returns the events that are whole now; `Err` when one never ends.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<SentEvent>, TooLong> {
        self.pending.extend(bytes.iter().filter(|byte| **byte != b'\r'));
        let mut events = Vec::new();
        while let Some(end) = self.pending.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.pending.drain(..end + 2).collect();
            let event = read(&String::from_utf8_lossy(&block));
            // A block of comments keeps the connection alive and is no event.
            if event != SentEvent::default() {
                events.push(event);
            }
        }
        if self.pending.len() > PENDING_BYTES_MAX { Err(TooLong) } else { Ok(events) }
    }
}

/// An event that never ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

fn read(block: &str) -> SentEvent {
    let mut event = SentEvent::default();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = value.parse().ok(),
            "event" => event.kind = Some(value.to_owned()),
            "data" if event.data.is_empty() => event.data = value.to_owned(),
            "data" => event.data = format!("{}\n{value}", event.data),
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_wherever_the_stream_is_cut() {
        let stream = b": alive\n\nid: 7\nevent: granted\ndata: {\"a\":1}\n\nid:8\r\ndata: x\r\n\r\n";
        let granted =
            SentEvent { id: Some(7), kind: Some("granted".to_owned()), data: "{\"a\":1}".to_owned() };
        let other = SentEvent { id: Some(8), kind: None, data: "x".to_owned() };
        for size in 1..stream.len() {
            let mut cutter = Cutter::default();
            let events = stream.chunks(size).flat_map(|bytes| cutter.push(bytes).unwrap());
            assert_eq!(events.collect::<Vec<_>>(), [granted.clone(), other.clone()], "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_an_end_is_given_up() {
        assert_eq!(Cutter::default().push(&vec![b'x'; PENDING_BYTES_MAX + 1]), Err(TooLong));
    }
}
