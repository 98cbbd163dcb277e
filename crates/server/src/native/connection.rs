//! Serving one connection, from its first byte to its last.
//!
//! Owns: when it is read, when it is written, and when and how it ends. Never: what a request means.

use super::accept::last_word;
use super::call::{Call, Ended};
use super::calls::{Begun, End, Kind, Peer, WaitEnds, begin, own_name, unreadable};
use super::front::{Front, at};
use super::lines::{Came, Lines};
use super::measured::measured;
use super::order::{Due, Order, Place};
use super::output::Output;
use super::together::Together;
use super::way::{Way, changed, way};
use crate::service::Service;
use crate::streams::ClientStream;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kunci_api::native::{Answer, BadLine, Line, Subject, Tag};
use kunci_process::sleep_until;
use kunci_replica::Lead;
use kunci_types::{ClientAddress, Origin};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Lines that are taken at a time; then it is others' turn.
const LINES_AT_ONCE: usize = 128;
/// With so many bytes that the peer hasn't taken, no more is asked for it.
const UNREAD_BYTES_MANY: usize = 64 << 10;
/// How long a connection may still send requests when the node stops.
const LINGER: Duration = Duration::from_millis(100);
/// For when nothing else is due.
const NOT_SOON: Duration = Duration::from_secs(60 * 60);

/// Serves a connection to its end.
pub(super) async fn serve(stream: impl ClientStream, front: &Front) {
    if let Err(error) = stream.prepare() {
        tracing::debug!(%error, "a connection was gone before it was served");
        return;
    }
    let name = match own_name() {
        Ok(name) => name,
        Err(error) => {
            tracing::error!(%error, "the system gives no randomness for a connection's name");
            return;
        }
    };
    let peer = Peer { name, address: stream.peer_address().map(ClientAddress::from) };
    let mut connection = Connection::new(&stream, front, peer);
    let ended = connection.run().await;
    let reading = connection.reading;
    drop(connection);
    match (ended, reading) {
        (Ok(()), Reading::ToTheEnd) => {}
        (Ok(()), Reading::On | Reading::Stopped) => last_word(stream).await,
        (Err(error), _) => tracing::debug!(%error, "a native connection broke"),
    }
}

/// Whether a connection is still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    On,
    /// No more, though more may come.
    Stopped,
    /// Everything has come.
    ToTheEnd,
}

/// How many of the lines that have come were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// There may be more at once.
    Some,
    /// Those for which there is room.
    AllForNow,
}

struct Connection<'a, S> {
    stream: &'a S,
    front: &'a Front,
    peer: Peer,
    reading: Reading,
    lines: Lines,
    /// Every whole line that has come is taken.
    is_drained: bool,
    bad_lines: u32,
    /// A request for which nobody leads, and until when that is waited for.
    held: Option<(Line, Instant)>,
    changes: Option<watch::Receiver<Lead>>,
    calls: FuturesUnordered<Call>,
    /// Requests that came one behind the other and will go together; none once all lines are taken.
    together: Option<Together>,
    order: Order<Option<End>>,
    output: Output,
    /// Nobody waits here any more: the peer has closed its side, or the connection is being closed.
    left: CancellationToken,
    /// When the node stops: until when requests are still read.
    stopping: Option<Instant>,
    /// When a line began that hasn't ended.
    line_began: Option<Instant>,
    last_active: Instant,
    /// When bytes came last: those of which requests are being taken.
    read_at: Instant,
}

impl<'a, S: ClientStream> Connection<'a, S> {
    fn new(stream: &'a S, front: &'a Front, peer: Peer) -> Self {
        let now = kunci_process::now();
        Self {
            stream,
            front,
            peer,
            reading: Reading::On,
            lines: Lines::default(),
            is_drained: true,
            bad_lines: 0,
            held: None,
            changes: None,
            calls: FuturesUnordered::new(),
            together: None,
            order: Order::default(),
            output: Output::default(),
            left: CancellationToken::new(),
            stopping: None,
            line_began: None,
            last_active: now,
            read_at: now,
        }
    }

    async fn run(&mut self) -> io::Result<()> {
        let stream = self.stream;
        let mut closed = pin!(stream.closed_by_peer());
        let mut stopped = pin!(self.front.stop.cancelled());
        let mut timer = pin!(sleep_until(kunci_process::now() + NOT_SOON));
        loop {
            let taken = self.take_lines();
            self.take_ends()?;
            self.front.measures.sent.add(self.output.flush(stream)?);
            if taken == Taken::Some {
                yield_now().await;
                continue;
            }
            if self.is_over() {
                return Ok(());
            }
            self.rest();
            let due = self.due();
            // One that goes off too early is set anew then; most are never reached.
            if due < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(due);
            }
            tokio::select! {
                biased;
                () = stopped.as_mut(), if self.stopping.is_none() => self.node_stops(),
                () = closed.as_mut(), if !self.left.is_cancelled() => self.peer_left(),
                () = timer.as_mut() => self.look_at_time()?,
                Some(ended) = self.calls.next(), if !self.calls.is_empty() => self.end(ended)?,
                ready = poll_fn(|cx| stream.poll_writable(cx)), if self.output.len() > 0 => ready?,
                () = changed(self.changes.as_mut()), if self.held.is_some() => {}
                // Last: a peer that floods it keeps nothing else from happening.
                ready = poll_fn(|cx| stream.poll_readable(cx)), if self.is_to_be_read() => {
                    ready?;
                    self.read()?;
                }
            }
        }
    }

    /// Takes requests for as long as there are some, and room for them, and nobody is kept waiting by that.
    fn take_lines(&mut self) -> Taken {
        if let Some((line, until)) = self.held.take() {
            self.take(line, Some(until));
        }
        self.is_drained = false;
        let mut taken = Taken::Some;
        for _ in 0..LINES_AT_ONCE {
            if !self.has_room() {
                taken = Taken::AllForNow;
                break;
            }
            let Some(came) = self.lines.next() else {
                (self.is_drained, taken) = (true, Taken::AllForNow);
                break;
            };
            // What has come after it belongs to another line.
            self.line_began = None;
            match came {
                Came::Line(line) => self.take(line, None),
                Came::Bad(bad) => self.refuse(bad),
                Came::MoreOfTheSame => self.count_bad_line(),
            }
        }
        self.go();
        taken
    }

    /// Whether another request may be taken.
    fn has_room(&self) -> bool {
        self.held.is_none()
            && self.order.len() < self.front.limits.in_flight_max
            && self.output.len() < UNREAD_BYTES_MANY
    }

    /// Begins a request; `waited` says until when that was put off before.
    fn take(&mut self, line: Line, waited: Option<Instant>) {
        let Line { request, tag } = line;
        let subject = request.subject();
        if subject.key.is_some()
            && let Some(service) = self.front.service.get()
        {
            match way(service, &request, &self.peer, waited) {
                Way::Here => {}
                Way::Later(until) => {
                    self.held = Some((Line { request, tag }, until));
                    self.changes.get_or_insert_with(|| {
                        let mut changes = service.lead_changes();
                        // One that was just missed counts too.
                        changes.mark_changed();
                        changes
                    });
                    return;
                }
                Way::Elsewhere(answer) => return self.answer(subject, tag, End::at(*answer)),
            }
        }
        self.changes = None;
        let place = self.order.enter(subject, tag).since(self.read_at);
        let ends = WaitEnds { left: self.left.clone(), stop: self.front.stop.clone() };
        match begin(self.front, request, &self.peer, &ends) {
            Begun::Alone(end) => {
                // Calls begin in the order of their lines.
                self.go();
                self.calls.push(Call::Alone(Some(place), end));
            }
            Begun::Together(service, kind) => self.join(service, place, kind),
        }
    }

    /// Lets a request go with those before it, if they are of its kind.
    fn join(&mut self, service: Service, place: Place, kind: Kind) {
        let (place, kind) = match &mut self.together {
            Some(together) => match together.add(place, kind) {
                Ok(()) => return,
                Err(back) => back,
            },
            None => (place, kind),
        };
        self.go();
        self.together = Some(Together::new(service, Origin::at(self.peer.address), place, kind));
    }

    /// Begins what goes together.
    fn go(&mut self) {
        self.calls.extend(self.together.take().map(|together| Call::Together(together.begin())));
    }

    /// Answers a line that can't be read.
    fn refuse(&mut self, bad: BadLine) {
        let BadLine { subject, tag, why } = bad;
        let end = unreadable(self.front, subject.as_ref(), &why);
        match subject {
            Some(subject) => self.answer(subject, tag, end),
            None => self.say(None, tag, end),
        }
        if why.ends_connection() {
            self.stop_reading();
        } else if why.breaks_grammar() {
            self.count_bad_line();
        }
    }

    fn count_bad_line(&mut self) {
        self.bad_lines += 1;
        if self.bad_lines == self.front.limits.bad_lines_max {
            self.front.measures.bad_lines.count();
        }
        if self.bad_lines >= self.front.limits.bad_lines_max {
            self.stop_reading();
        }
    }

    /// Nothing more is taken. Waits end without an answer, what is decided goes out, and the connection ends.
    fn stop_reading(&mut self) {
        self.reading = Reading::Stopped;
        self.lines.clear();
        self.held = None;
        self.left.cancel();
    }

    /// Answers at once, in its turn.
    fn answer(&mut self, subject: Subject, tag: Option<Tag>, end: End) {
        let place = self.order.enter(subject, tag).since(self.read_at);
        self.answer_due(place, Some(end));
    }

    fn answer_due(&mut self, place: Place, end: Option<End>) {
        measured(&self.front.measures, &place, end.as_ref(), self.last_active);
        for Due { subject, tag, end } in self.order.end(place, end) {
            if let Some(end) = end {
                self.say(Some(subject), tag, end);
            }
        }
    }

    fn say(&mut self, subject: Option<Subject>, tag: Option<Tag>, end: End) {
        let End { outcome, position, grant } = end;
        self.output.push(&Answer { subject, outcome, at: at(position), tag }, grant);
    }

    /// Answers whatever has ended.
    fn take_ends(&mut self) -> io::Result<()> {
        // Later calls of this connection's task come back to what isn't ready.
        while let Some(Some(ended)) = self.calls.next().now_or_never() {
            self.end(ended)?;
        }
        Ok(())
    }

    fn end(&mut self, ended: Ended) -> io::Result<()> {
        self.last_active = kunci_process::now();
        for (place, end) in ended {
            self.answer_due(place, end);
        }
        if self.output.len() > self.front.limits.unread_bytes_max {
            self.front.measures.unread.count();
            return Err(io::Error::other("the peer doesn't read its answers: too many bytes wait for it"));
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        self.last_active = kunci_process::now();
        self.read_at = self.last_active;
        match self.lines.read_from(self.stream)? {
            Some(0) => {
                self.peer_left();
                self.reading = Reading::ToTheEnd;
            }
            // None is a false alarm.
            read => self.front.measures.received.add(read.map_or(0, |count| count as u64)),
        }
        Ok(())
    }

    /// The peer has closed its side: whoever waits is detached. What was asked is still done, and told.
    fn peer_left(&mut self) {
        self.left.cancel();
    }

    fn node_stops(&mut self) {
        self.stopping = Some(kunci_process::now() + LINGER);
    }

    fn is_to_be_read(&self) -> bool {
        self.reading == Reading::On && self.is_drained
    }

    fn is_over(&self) -> bool {
        let is_taken = self.reading != Reading::On && self.is_drained && self.held.is_none();
        is_taken && self.order.len() == 0 && self.output.len() == 0
    }

    /// Nothing is under way. A request that waits is.
    fn is_idle(&self) -> bool {
        self.order.len() == 0 && self.output.len() == 0 && self.held.is_none()
    }

    /// Before it waits: gives back what it doesn't need meanwhile.
    fn rest(&mut self) {
        if self.order.len() == 0 {
            self.output.give_back();
        }
        let has_begun = self.is_drained && self.lines.has_begun();
        self.line_began = has_begun.then(|| self.line_began.unwrap_or_else(kunci_process::now));
    }

    /// When something is due next.
    fn due(&self) -> Instant {
        let limits = &self.front.limits;
        let dues = [
            self.held.as_ref().map(|(_, until)| *until),
            self.output.blocked_since().map(|since| since + limits.write_within),
            self.line_began.map(|began| began + limits.line_within),
            self.is_idle().then(|| self.last_active + limits.idle_within),
            self.stopping.filter(|_| self.reading == Reading::On),
        ];
        dues.into_iter().flatten().min().unwrap_or_else(|| kunci_process::now() + NOT_SOON)
    }

    fn look_at_time(&mut self) -> io::Result<()> {
        let (limits, now) = (&self.front.limits, kunci_process::now());
        let is_over = |since: Option<Instant>, within| since.is_some_and(|since| now >= since + within);
        if is_over(self.output.blocked_since(), limits.write_within) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the peer doesn't read its answers"));
        }
        let is_half_a_line = is_over(self.line_began, limits.line_within);
        let is_idle_for_long = self.is_idle() && is_over(Some(self.last_active), limits.idle_within);
        if is_half_a_line || is_idle_for_long || is_over(self.stopping, Duration::ZERO) {
            self.stop_reading();
        }
        Ok(())
    }
}
