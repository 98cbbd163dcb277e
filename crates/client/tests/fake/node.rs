//! One connection as a node serves it.

use super::table::{Reply, Table};
use super::{Fake, Fate, Seen, Weather};
use kunci_api::Applied;
use kunci_api::native::{Answer, At, Line, Outcome, Refused, Request, Welcome};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, split};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Serves until the connection is cut or closed.
pub(super) async fn serve(fake: Fake, node: String, stream: DuplexStream) {
    let (reader, mut writer) = split(stream);
    let mut lines = BufReader::new(reader).lines();
    let (answers, mut to_write) = mpsc::unbounded_channel::<Answer>();
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { return };
                let line = Line::parse(line.as_bytes()).unwrap();
                if !request(&fake, &node, line, &answers) { return }
            }
            Some(answer) = to_write.recv() => {
                if is_silent(&fake, &node) { continue }
                let mut bytes = Vec::new();
                answer.write(&mut bytes);
                if writer.write_all(&bytes).await.is_err() { return }
            }
        }
    }
}

fn is_silent(fake: &Fake, node: &str) -> bool {
    matches!(fake.world().weather.get(node), Some(Weather::Mute | Weather::Blackhole))
}

/// Returns whether the connection goes on.
fn request(fake: &Fake, node: &str, line: Line, answers: &mpsc::UnboundedSender<Answer>) -> bool {
    let Line { request, tag } = line;
    let subject = request.subject();
    let reply = Reply { answers: answers.clone(), subject: subject.clone(), tag };
    let (weather, fate) = {
        let mut world = fake.world();
        let weather = world.weather.get(node).cloned().unwrap_or(Weather::Refused);
        let vanishes = match &request {
            Request::Renew { key, .. } => {
                world.renewals_vanish && world.table.holder(key.as_str()).as_deref() == Some("me")
            }
            _ => false,
        };
        if vanishes || matches!(weather, Weather::Mute | Weather::Blackhole) {
            return true;
        }
        if !matches!(request, Request::Hello(_) | Request::Ping) {
            world.seen.push(Seen { when: Instant::now(), node: node.to_owned(), request: request.clone() });
        }
        let fate = match world.fates.front() {
            Some((op, fate)) if *op == subject.op && weather == Weather::Fine => Some(*fate),
            _ => None,
        };
        if fate.is_some() {
            world.fates.pop_front();
        }
        (weather, fate)
    };
    match (&request, weather) {
        (_, Weather::Unauthorized) => {
            reply.send(refused("unauthorized"));
            return true;
        }
        (Request::Hello(_), _) => {
            let cluster = Some(fake.world().cluster.clone());
            reply.send(Outcome::Welcome(Welcome { version: 1, cluster, leader: None }));
            return true;
        }
        (Request::Ping, _) => {
            reply.send(Outcome::Pong);
            return true;
        }
        (_, Weather::Follows(leader)) => {
            reply.send(Outcome::Moved { leader: leader.to_owned(), request_id: None });
            return true;
        }
        (_, Weather::Refuses(code)) => {
            reply.send(refused(code));
            return true;
        }
        (_, Weather::Hesitates(code, by)) => {
            tokio::spawn(async move {
                sleep(by).await;
                reply.send(refused(code));
            });
            return true;
        }
        _ => {}
    }
    apply(fake, request, reply, fate)
}

/// Applies a request, or lets it meet its fate. Returns whether the connection goes on.
fn apply(fake: &Fake, request: Request, mut reply: Reply, fate: Option<Fate>) -> bool {
    match fate {
        None => Table::handle(&fake.0, request, reply),
        Some(Fate::Cut) => return false,
        Some(Fate::Refused(code)) => reply.send(refused(code)),
        Some(Fate::AnswerLost) => {
            Table::handle(&fake.0, request, Reply::to_nobody());
            return false;
        }
        Some(Fate::AnswerSwallowed) => Table::handle(&fake.0, request, Reply::to_nobody()),
        Some(Fate::Slow(by)) => {
            let (late, mut told) = mpsc::unbounded_channel();
            let in_time = std::mem::replace(&mut reply.answers, late);
            tokio::spawn(async move {
                while let Some(answer) = told.recv().await {
                    sleep(by).await;
                    let _ = in_time.send(answer);
                }
            });
            Table::handle(&fake.0, request, reply);
        }
    }
    true
}

/// A refusal by its code, as a server would write it.
pub(super) fn refused(code: &str) -> Outcome {
    Outcome::Error(Refused {
        code: code.to_owned(),
        applied: if code == "outcome_unknown" { Applied::Unknown } else { Applied::No },
        retry_ms: None,
        reason: None,
        token: None,
        delay_ms: None,
        field: None,
        min_ms: None,
        max_ms: None,
        limit: None,
        max: None,
        request_id: None,
        detail: format!("{code}, says the fake"),
    })
}

impl Reply {
    pub(super) fn send(&self, outcome: Outcome) {
        let at = At { index: 1, place: 0 };
        let subject = Some(self.subject.clone());
        // Whose connection is gone doesn't hear it.
        let _ = self.answers.send(Answer { subject, outcome, at, tag: self.tag });
    }
}
