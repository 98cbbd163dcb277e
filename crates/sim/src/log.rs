//! What the product logs in a world, and its panics.
//!
//! Owns: that both get into the trace of their world. Never: into its hash; a run that nobody reads is the same.

use crate::trace::{Lines, Trace};
use kunci_process::Process;
use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

static HOOK: Once = Once::new();

/// From now on this thread's logs and panics are a world's.
pub(crate) fn into(trace: &Trace, lines: Lines) -> Option<DefaultGuard> {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if crate::clock::is_simulated() {
                let who = Process::current()
                    .map_or_else(|| "world".to_owned(), |process| process.name().to_owned());
                PANICS.with_borrow_mut(|panics| panics.push(format!("{who}: {panic}")));
            } else {
                before(panic);
            }
        }));
    });
    (lines != Lines::Dropped).then(|| tracing::subscriber::set_default(Logs { trace: trace.clone() }))
}

/// The panics of this thread's world.
pub(crate) fn panics() -> Vec<String> {
    PANICS.take()
}

struct Logs {
    trace: Trace,
}

impl Subscriber for Logs {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().starts_with("kunci");
        metadata.is_event() && *metadata.level() <= if is_ours { Level::DEBUG } else { Level::WARN }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        let who = Process::current().map_or_else(|| "world".to_owned(), |process| process.name().to_owned());
        self.trace.say(&who, &format!("{}:{}", event.metadata().level(), words.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of an event, its message first.
struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // A String takes whatever is written into it.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
