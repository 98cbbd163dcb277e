//! The unit that peers exchange: a length-checked, checksummed frame.
//!
//! Owns: the bytes of a frame and the bound of its size. Never: what is in it.
//!
//! ```text
//! length of body u32   crc32 of kind and body u32   kind u8   body
//! ```
//!
//! Integers are big-endian. The checksum is for plain TCP, whose own lets some damage through; damage that got into
//! a log entry here would make the replicas differ.

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter, ReadHalf, WriteHalf,
};

use super::links::BoxedStream;

/// The most bytes of one body: a batch of entries with the bound of the batcher, with room to spare.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;
/// Bytes before the body.
const HEAD_BYTES: usize = 9;
/// Memory for a body is taken in steps of this much, as its bytes arrive: a length alone reserves nothing.
const STEP_BYTES: usize = 64 << 10;
/// What is read and written at once.
const BUFFER_BYTES: usize = 64 << 10;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// What the body is; its meaning belongs to the connection's purpose.
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

impl Frame {
    /// A frame that holds `value`.
    pub(crate) fn holding<T: Serialize>(kind: u8, value: &T) -> io::Result<Self> {
        let body = postcard::to_allocvec(value).map_err(io::Error::other)?;
        Ok(Self { kind, body: body.into() })
    }

    /// Reads the value that the body holds.
    pub(crate) fn value<T: DeserializeOwned>(&self) -> io::Result<T> {
        postcard::from_bytes(&self.body).map_err(|error| {
            malformed(format!("the body of a frame of kind {} can't be read: {error}", self.kind))
        })
    }
}

/// A connection whose handshake is over. Nothing was read or written after it.
pub(crate) struct Connection {
    stream: BoxedStream,
}

/// Both directions of a connection of frames.
pub(crate) struct Frames {
    pub(crate) reader: FrameReader,
    pub(crate) writer: FrameWriter,
}

impl Connection {
    pub(crate) fn over(stream: BoxedStream) -> Self {
        Self { stream }
    }

    /// For the purposes that exchange frames.
    pub(crate) fn into_frames(self) -> Frames {
        let (reader, writer) = tokio::io::split(self.stream);
        Frames {
            reader: FrameReader { from: BufReader::with_capacity(BUFFER_BYTES, reader) },
            writer: FrameWriter { to: BufWriter::with_capacity(BUFFER_BYTES, writer) },
        }
    }

    /// For the purpose that brings a protocol of its own.
    pub(crate) fn into_stream(self) -> BoxedStream {
        self.stream
    }
}

/// The way in.
pub(crate) struct FrameReader {
    from: BufReader<ReadHalf<BoxedStream>>,
}

impl FrameReader {
    /// Reads the next frame; `None` when the peer closed between two. Not safe to drop while it reads.
    ///
    /// # Errors
    /// When the stream breaks, or a frame is too long or damaged: the connection is of no use then.
    pub(crate) async fn read(&mut self, body_bytes_max: usize) -> io::Result<Option<Frame>> {
        read(&mut self.from, body_bytes_max).await
    }
}

/// The way out.
pub(crate) struct FrameWriter {
    to: BufWriter<WriteHalf<BoxedStream>>,
}

impl FrameWriter {
    /// Puts a frame into the buffer, and sends what is too much for it. After it was dropped halfway, or failed, the
    /// connection is of no use.
    pub(crate) async fn write(&mut self, frame: &Frame) -> io::Result<()> {
        write(&mut self.to, frame).await
    }

    /// Sends what is in the buffer.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        self.to.flush().await
    }

    /// Writes one frame and sends it.
    pub(crate) async fn send(&mut self, frame: &Frame) -> io::Result<()> {
        self.write(frame).await?;
        self.flush().await
    }
}

async fn read(from: &mut (impl AsyncRead + Unpin), body_bytes_max: usize) -> io::Result<Option<Frame>> {
    let mut head = [0; HEAD_BYTES];
    let first = from.read(&mut head).await?;
    if first == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[first..]).await?;
    let [l0, l1, l2, l3, c0, c1, c2, c3, kind] = head;
    let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
    if length > body_bytes_max {
        return Err(malformed(format!(
            "a frame says it has {length} bytes, expected at most {body_bytes_max}"
        )));
    }
    let mut body = BytesMut::new();
    while body.len() < length {
        let so_far = body.len();
        body.resize((so_far + STEP_BYTES).min(length), 0);
        from.read_exact(&mut body[so_far..]).await?;
    }
    if checksum(kind, &body) != u32::from_be_bytes([c0, c1, c2, c3]) {
        return Err(malformed(format!("a frame of {length} bytes is damaged: its checksum is another")));
    }
    Ok(Some(Frame { kind, body: body.freeze() }))
}

async fn write(to: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> io::Result<()> {
    let length = frame.body.len();
    // The other side would end the connection over it, each time anew.
    let bytes = u32::try_from(length).ok().filter(|_| length <= BODY_BYTES_MAX).ok_or_else(|| {
        malformed(format!("a frame of {length} bytes can't be sent: expected at most {BODY_BYTES_MAX}"))
    })?;
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&bytes.to_be_bytes());
    head[4..8].copy_from_slice(&checksum(frame.kind, &frame.body).to_be_bytes());
    head[8] = frame.kind;
    to.write_all(&head).await?;
    to.write_all(&frame.body).await
}

fn checksum(kind: u8, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(body);
    hasher.finalize()
}

fn malformed(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX: usize = 4096;

    async fn bytes_of(frame: &Frame) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, frame).await.unwrap();
        bytes
    }

    async fn read_from(mut bytes: &[u8]) -> io::Result<Option<Frame>> {
        read(&mut bytes, MAX).await
    }

    #[tokio::test]
    async fn frames_come_out_as_they_went_in_and_then_the_end() {
        let connected = |stream| Connection::over(Box::new(stream)).into_frames();
        let (here, there) = tokio::io::duplex(100);
        let (mut here, mut there) = (connected(here), connected(there));
        let frames = [
            Frame { kind: 0, body: Bytes::new() },
            Frame { kind: 255, body: vec![7; 3 * STEP_BYTES + 1].into() },
            Frame::holding(3, &("words".to_owned(), 5_u64)).unwrap(),
        ];
        let sending = async {
            for frame in &frames {
                here.writer.send(frame).await.unwrap();
            }
            drop(here);
        };
        let receiving = async {
            let mut received = Vec::new();
            while let Some(frame) = there.reader.read(BODY_BYTES_MAX).await.unwrap() {
                received.push(frame);
            }
            received
        };
        let ((), received) = tokio::join!(sending, receiving);

        assert_eq!(received, frames);
        assert_eq!(received[2].value::<(String, u64)>().unwrap(), ("words".to_owned(), 5));
    }

    /// Bit by bit: nothing of a frame can change without being seen.
    #[tokio::test]
    async fn a_frame_with_one_bit_changed_is_never_taken() {
        let bytes = bytes_of(&Frame { kind: 1, body: Bytes::from_static(b"grant") }).await;
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read_from(&damaged).await.is_err(), "bit {bit}");
        }
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_is_refused_before_its_body_comes_and_not_sent_at_all() {
        let bytes = bytes_of(&Frame { kind: 1, body: vec![0; MAX + 1].into() }).await;
        let error = read_from(&bytes[..HEAD_BYTES]).await.unwrap_err();
        assert_eq!(error.to_string(), "a frame says it has 4097 bytes, expected at most 4096");

        let frame = Frame { kind: 1, body: vec![0; BODY_BYTES_MAX + 1].into() };
        let error = write(&mut Vec::new(), &frame).await.unwrap_err();
        assert_eq!(error.to_string(), "a frame of 67108865 bytes can't be sent: expected at most 67108864");
    }

    #[tokio::test]
    async fn an_end_within_a_frame_is_an_error_and_between_two_is_not() {
        let bytes = bytes_of(&Frame { kind: 1, body: Bytes::from_static(b"grant") }).await;
        assert_eq!(read_from(&[]).await.unwrap(), None);
        for cut in 1..bytes.len() {
            let error = read_from(&bytes[..cut]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "cut after {cut} bytes");
        }
    }

    #[test]
    fn a_body_that_is_something_else_is_an_error() {
        let frame = Frame { kind: 9, body: Bytes::from_static(&[0xff; 3]) };
        let error = frame.value::<(String, u64)>().unwrap_err();
        assert!(error.to_string().starts_with("the body of a frame of kind 9 can't be read"), "{error}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            if let Ok(Some(frame)) = runtime.block_on(read_from(&bytes)) {
                prop_assert!(frame.body.len() + HEAD_BYTES <= bytes.len());
                drop(frame.value::<(String, Vec<u64>)>());
            }
        }
    }
}
