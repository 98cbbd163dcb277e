//! One connection on which several questions may wait for their answers.
//!
//! Owns: the task that connects, sends questions and hands out answers. Never: outlives those who use it: dropping
//! the last handle ends the task, whatever it is doing.

use super::super::super::dial::Dialer;
use super::super::super::frame::{Connection, Frame, Frames};
use super::super::super::handshake::Purpose;
use super::super::super::raft_frames::{ASK_BYTES_MAX, IN_FLIGHT_MAX, frames, untag};
use super::AskError;
use futures::StreamExt;
use std::collections::BTreeMap;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A connection to one member.
pub(super) struct AskLink {
    questions: mpsc::Sender<Question>,
    task: JoinHandle<()>,
}

struct Question {
    tag: u64,
    frame: Frame,
    answer: oneshot::Sender<Result<Frame, AskError>>,
}

type Waiting = BTreeMap<u64, oneshot::Sender<Result<Frame, AskError>>>;

impl AskLink {
    /// Begins to connect.
    pub(super) fn connect(dialer: Dialer, to: u64, address: String) -> Self {
        let (questions, asked) = mpsc::channel(IN_FLIGHT_MAX);
        let task = kunci_process::spawn(async move {
            match dialer.connect(to, &address, Purpose::Ask).await {
                Ok(connection) => answer_all(connection, asked).await,
                Err(error) => refuse_all(asked, &AskError::Connect(error.to_string())),
            }
        });
        Self { questions, task }
    }

    /// Whether no question can be asked here any more.
    pub(super) fn has_ended(&self) -> bool {
        self.questions.is_closed()
    }

    /// Asks and waits for the answer, without its tag. The caller bounds the time.
    pub(super) async fn ask(&self, tag: u64, frame: Frame) -> Result<Frame, AskError> {
        let ended = || AskError::Ended { text: "it was closed before".to_owned() };
        let (answer, answered) = oneshot::channel();
        self.questions.try_send(Question { tag, frame, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => AskError::Busy,
            mpsc::error::TrySendError::Closed(_) => ended(),
        })?;
        answered.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl Drop for AskLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer_all(connection: Connection, mut asked: mpsc::Receiver<Question>) {
    let Frames { reader, mut writer } = connection.into_frames();
    let mut answers = frames(reader, ASK_BYTES_MAX);
    let mut waiting = Waiting::new();
    let text = loop {
        tokio::select! {
            biased;
            answer = answers.next() => match answer {
                Some(Ok(frame)) => if let Err(error) = hand_out(&frame, &mut waiting) { break error.to_string() },
                Some(Err(error)) => break error.to_string(),
                None => break "the member closed it".to_owned(),
            },
            question = asked.recv() => {
                let Some(question) = question else { return };
                if question.answer.is_closed() {
                    continue;
                }
                // Those who don't wait any more make room.
                waiting.retain(|_, answer| !answer.is_closed());
                if waiting.len() >= IN_FLIGHT_MAX {
                    drop(question.answer.send(Err(AskError::Busy)));
                    continue;
                }
                waiting.insert(question.tag, question.answer);
                // While this waits no answer is handed out. It can't take for ever: whoever loses patience takes
                // the connection out of use.
                if let Err(error) = writer.send(&question.frame).await {
                    break error.to_string();
                }
            }
        }
    };
    let ended = AskError::Ended { text };
    for answer in waiting.into_values() {
        drop(answer.send(Err(ended.clone())));
    }
    refuse_all(asked, &ended);
}

fn hand_out(frame: &Frame, waiting: &mut Waiting) -> std::io::Result<()> {
    let (tag, answer) = untag(frame)?;
    if let Some(waiter) = waiting.remove(&tag) {
        drop(waiter.send(Ok(answer)));
    }
    Ok(())
}

fn refuse_all(mut asked: mpsc::Receiver<Question>, error: &AskError) {
    asked.close();
    while let Ok(question) = asked.try_recv() {
        drop(question.answer.send(Err(error.clone())));
    }
}
