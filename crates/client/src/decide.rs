//! One request, repeated until a server has decided it.
//!
//! Owns: for how long, and what is known when nobody did. Never: repeats what isn't safe to repeat: each request names
//! a request id or a lease, so that it applies once.

use crate::client::Core;
use crate::clock::Moment;
use crate::error::{Certainty, Error};
use crate::links::{CallError, Round, Try};
use crate::patience::{Patience, WAITED_LONG};
use crate::wire::PAUSE;
use kunci_api::native::{Acquire, Outcome, Request, WaitFor};
use kunci_process::sleep;
use std::time::Duration;

/// How long an answer may take that nothing has to be waited for: a server refuses a try-once that sat in it for 2 s.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Over the wait itself, the answer may take this long.
const WAITED_ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Returns the decision, and when what it answers was sent.
pub(crate) async fn decided(core: &Core, request: &Request) -> Result<(Outcome, Moment), Error> {
    let within = answer_within(request);
    let mut patience = Patience::new(core.patience);
    let mut round = Round::default();
    let mut may_be_cut = true;
    let decided_by = decided_by(core, request);
    let is_late = |now: Moment| decided_by.is_some_and(|at| now >= at);
    loop {
        let tried_at = core.clock.now();
        let tried = core.links.attempt(request, within, &mut round).await;
        match tried {
            Try::Told { outcome, sent_at } => return Ok((outcome, sent_at)),
            Try::NoneLeft if is_late(tried_at) => return Err(patience.over()),
            // All connections can break at one moment without a server being gone: each is made again, after a moment,
            // before that is believed.
            Try::NoneLeft if may_be_cut && patience.certainty() == Certainty::Unknown => {
                may_be_cut = false;
                round = Round::default();
                sleep(PAUSE).await;
            }
            Try::NoneLeft => {
                round = Round::default();
                sleep(patience.nobody(core.outage, core.clock.now())?).await;
            }
            Try::Failed(error) => {
                let under_way = core.clock.now().since(tried_at);
                if matches!(error, CallError::NoAnswer(_)) {
                    patience.waited(under_way);
                    may_be_cut |= under_way >= WAITED_LONG;
                }
                patience.no_answer(&error);
            }
            Try::Passing(passing) => {
                let now = core.clock.now();
                patience.waited(now.since(tried_at));
                may_be_cut = true;
                round = Round::default();
                let pause = patience.passing(passing, now)?;
                if is_late(now) {
                    return Err(patience.over());
                }
                sleep(pause).await;
            }
        }
    }
}

/// From here on nobody is asked a second time: each try that takes long before it comes to nothing may have been a wait,
/// and looks like a new beginning, but all of them together can't be. `None` for a wait without limit.
fn decided_by(core: &Core, request: &Request) -> Option<Moment> {
    let wait = match request {
        Request::Acquire(Acquire { wait: WaitFor::AsLongAsAllowed, .. }) => return None,
        Request::Acquire(Acquire { wait: WaitFor::UpToMs(ms), .. }) => Duration::from_millis(*ms),
        _ => Duration::ZERO,
    };
    Some(core.clock.now().plus(wait).plus(core.patience).plus(core.outage))
}

fn answer_within(request: &Request) -> Option<Duration> {
    let Request::Acquire(acquire) = request else { return Some(ANSWER_WITHIN) };
    match acquire.wait {
        WaitFor::Once => Some(ANSWER_WITHIN),
        WaitFor::UpToMs(ms) => Some(Duration::from_millis(ms).saturating_add(WAITED_ANSWER_WITHIN)),
        // The connection notices by itself when the server is gone.
        WaitFor::AsLongAsAllowed => None,
    }
}
