//! `/cluster/init`: the one call that a node of no cluster acts on.
//!
//! Owns: the way from the call to whoever can form a cluster, and back. Never: a data folder.

use super::answer::{Answer, Failure, ok};
use super::front::Front;
use crate::service::{Service, Stamped};
use axum::extract::{Request, State};
use kunci_api::{Code, InitBody, InitRequest, Problem};
use kunci_process::sleep;
use kunci_types::Revision;
use std::time::Duration;
use tokio::sync::oneshot;

/// A node that has a cluster has it by this call, or by another way: how long the first is waited for.
const TOLD_WITHIN: Duration = Duration::from_millis(500);

/// Somebody asks a node of no cluster to form one. Dropping it says that the node has a cluster, or stops.
#[derive(Debug)]
pub struct FormAsked {
    /// Every token of the new cluster is larger than this.
    pub token_floor: Option<Revision>,
    told: oneshot::Sender<Result<(), String>>,
}

impl FormAsked {
    /// The cluster is formed. The door needs its service for the answer, by [`super::HttpDoor::enter`].
    pub fn formed(self) {
        drop(self.told.send(Ok(())));
    }

    /// It can't be formed. `why` is shown to whoever asked.
    pub fn failed(self, why: String) {
        drop(self.told.send(Err(why)));
    }
}

/// Form a cluster with this node, which belongs to none, as its first member.
#[utoipa::path(
    post, path = "/cluster/init", tag = "cluster",
    request_body = InitRequest,
    responses(
        (status = 200, description = "Formed. The others are added to it, one by one.", body = InitBody),
        (status = 409, description = "This node belongs to a cluster: `already_formed`.", body = Problem, content_type = "application/problem+json"),
        (status = "default", description = "Refused: see docs/errors.md.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn init(State(front): State<Front>, request: Request) -> Answer {
    let body: InitRequest = front.json(request).await?;
    let token_floor = body.read().map_err(|invalid| front.refuse(invalid))?;
    if front.service.initialized() {
        return Err(already(&front));
    }
    let (told, mut formed) = oneshot::channel();
    if front.forming.try_send(FormAsked { token_floor, told }).is_err() {
        let detail = "many ask this node to form a cluster: see with GET /cluster what came of it";
        return Err(front.refuse(Problem::new(Code::Overloaded, detail)));
    }
    let otherwise = async {
        front.service.wait().await;
        sleep(TOLD_WITHIN).await;
    };
    let told = tokio::select! {
        biased;
        told = &mut formed => told,
        () = otherwise => return Err(already(&front)),
        () = front.stop.cancelled() => return Err(stopping(&front)),
    };
    match told {
        Ok(Ok(())) => ok(Ok(formed_body(front.service.wait().await))),
        Ok(Err(why)) => Err(front.refuse(Problem::new(Code::NoLeader, why))),
        Err(_) if front.service.initialized() => Err(already(&front)),
        Err(_) => Err(stopping(&front)),
    }
}

fn formed_body(service: &Service) -> Stamped<InitBody> {
    let status = service.status_of_node();
    let body = InitBody {
        cluster_id: status.cluster_id.to_string(),
        node_id: status.node_id,
        revision: status.revision.get(),
    };
    Stamped { body, position: service.position() }
}

fn already(front: &Front) -> Failure {
    let cluster = front.service.get().map(|service| service.cluster_id().to_string()).unwrap_or_default();
    let detail = format!("this node belongs to cluster {cluster}: expected a node of no cluster");
    front.refuse(Problem::new(Code::AlreadyFormed, detail))
}

fn stopping(front: &Front) -> Failure {
    front.refuse(Problem::new(Code::NoLeader, "this node stops, and has formed no cluster"))
}
