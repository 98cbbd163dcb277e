//! Fenced objects in real stores: in memory, and a server that speaks S3. Local files can't write on a condition, and say
//! so.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic, in its helpers too")]

mod s3;

use bytes::Bytes;
use kunci_fence::gate::Admitted;
use kunci_fence::object::{Current, FencedObject, Unfit, WriteError, probe};
use kunci_types::{FencingToken, ResourceName};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{Attribute, ObjectStore, ObjectStoreExt as _, PutOptions};
use s3::{Faults, S3Server};
use std::sync::Arc;

fn token(number: u64) -> FencingToken {
    FencingToken::presented(number).unwrap()
}

fn object(store: &Arc<dyn ObjectStore>) -> FencedObject {
    FencedObject::new(Arc::clone(store), "orders/42".into(), ResourceName::parse("orders/42").unwrap())
}

fn in_memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

/// Both numbers of a rejection.
fn numbers<T: std::fmt::Debug>(written: Result<T, WriteError>) -> (u64, u64) {
    match written {
        Err(WriteError::Rejected(rejected)) => (rejected.found.get(), rejected.kept.get()),
        other => panic!("no rejection: {other:?}"),
    }
}

async fn value(object: &FencedObject) -> Option<Bytes> {
    object.get().await.unwrap().unwrap().value
}

/// S9: larger moves it up, equal passes, smaller is rejected with both numbers; a deletion forgets no token.
async fn tokens_are_compared(store: Arc<dyn ObjectStore>) {
    let object = object(&store);
    assert_eq!(object.get().await.unwrap(), None);
    assert_eq!(object.put(token(9), "nine").await.unwrap(), Admitted::Newer);
    assert_eq!(object.put(token(9), "nine again").await.unwrap(), Admitted::Equal);
    assert_eq!(object.put(token(10), "").await.unwrap(), Admitted::Newer);
    assert_eq!(object.get().await.unwrap(), Some(Current { token: token(10), value: Some(Bytes::new()) }));
    assert_eq!(numbers(object.put(token(9), "late").await), (9, 10));
    assert_eq!(value(&object).await.unwrap(), "");

    assert_eq!(object.delete(token(11)).await.unwrap(), Admitted::Newer);
    assert_eq!(object.get().await.unwrap(), Some(Current { token: token(11), value: None }));
    assert_eq!(numbers(object.put(token(10), "late").await), (10, 11));
    assert_eq!(numbers(object.delete(token(10)).await), (10, 11));
    assert_eq!(object.put(token(11), "back").await.unwrap(), Admitted::Equal);
    assert_eq!(value(&object).await.unwrap(), "back");
}

#[tokio::test]
async fn tokens_are_compared_in_memory() {
    tokens_are_compared(in_memory()).await;
}

#[tokio::test]
async fn tokens_are_compared_in_s3() {
    tokens_are_compared(S3Server::start(Faults::default()).await.store()).await;
}

/// S9 under load: eight writers with interleaved tokens, each of which appends its token. What is admitted lands in order,
/// and nothing that was admitted is lost.
async fn the_order_of_writes_is_the_order_of_tokens(store: Arc<dyn ObjectStore>, turns: u64) {
    const WRITERS: u64 = 8;
    let object = object(&store);
    let write = |number: u64| {
        let object = object.clone();
        async move {
            let mut admitted = 0;
            for turn in 0..turns {
                let mine = 1 + number + turn * WRITERS;
                let append = |before: Option<Bytes>| {
                    Some(Bytes::from(
                        [&before.unwrap_or_default()[..], format!("{mine} ").as_bytes()].concat(),
                    ))
                };
                match object.update(token(mine), append).await {
                    Ok(_) => admitted += 1,
                    Err(WriteError::Rejected(_)) => {}
                    Err(other) => panic!("{other}"),
                }
                tokio::task::yield_now().await;
            }
            admitted
        }
    };
    let writers: Vec<_> = (0..WRITERS).map(|number| tokio::spawn(write(number))).collect();
    let mut admitted = 0;
    for writer in writers {
        admitted += writer.await.unwrap();
    }
    let landed = String::from_utf8(value(&object).await.unwrap().into()).unwrap();
    let landed: Vec<u64> = landed.split_whitespace().map(|token| token.parse().unwrap()).collect();
    assert!(landed.is_sorted(), "{landed:?}");
    assert_eq!(landed.len(), admitted, "{landed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_order_of_writes_is_the_order_of_tokens_in_memory() {
    the_order_of_writes_is_the_order_of_tokens(in_memory(), 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_order_of_writes_is_the_order_of_tokens_in_s3() {
    let server = S3Server::start(Faults::default()).await;
    the_order_of_writes_is_the_order_of_tokens(server.store(), 10).await;
}

/// S9: a late writer that has read before its successor wrote is refused, also when the successor wrote the very value
/// that was there. An S3 ETag is a digest of the content, so that a token beside the content wouldn't do.
#[tokio::test]
async fn a_value_that_comes_back_opens_no_way_for_a_late_writer() {
    let server = S3Server::start(Faults::default()).await;
    let store = server.store();
    let put = async |number: &'static str| {
        let attributes = [(Attribute::Metadata("token".into()), number)].into_iter().collect();
        let options = PutOptions { attributes, ..PutOptions::default() };
        store.put_opts(&"plain".into(), "same".into(), options).await.unwrap().e_tag.unwrap()
    };
    assert_eq!(put("5").await, put("6").await, "S3 doesn't tell two tokens in the metadata apart");

    let object = object(&store);
    object.put(token(5), "same").await.unwrap();
    let before = store.head(&"orders/42".into()).await.unwrap().e_tag;
    object.put(token(6), "same").await.unwrap();
    assert_ne!(store.head(&"orders/42".into()).await.unwrap().e_tag, before);
    assert_eq!(numbers(object.put(token(5), "same").await), (5, 6));
}

/// C44's kin: a write whose answer was lost is known by its name, and isn't made again.
#[tokio::test]
async fn a_change_whose_answer_was_lost_is_made_once() {
    let server = S3Server::start(Faults { loses_answers_of_puts: 2, ..Faults::default() }).await;
    let object = object(&server.store());
    for expected in ["1", "2", "3"] {
        let one_more = |before: Option<Bytes>| {
            let count: u32 = before.map_or(0, |bytes| std::str::from_utf8(&bytes).unwrap().parse().unwrap());
            Some(Bytes::from((count + 1).to_string()))
        };
        object.update(token(7), one_more).await.unwrap();
        assert_eq!(value(&object).await.unwrap(), expected);
    }
    assert_eq!(server.lost_answers(), 2);
}

/// What we can't read isn't overwritten: no token in it can be compared.
#[tokio::test]
async fn an_object_that_was_not_written_through_the_fence_stays() {
    let store = in_memory();
    for content in ["", "plain", "kunci-fence 1 token=x write=0 value\n"] {
        store.put(&"orders/42".into(), content.into()).await.unwrap();
        let refused = object(&store).put(token(7), "v").await;
        assert!(matches!(refused, Err(WriteError::NotFenced(_))), "{refused:?}");
        let there = store.get(&"orders/42".into()).await.unwrap().bytes().await.unwrap();
        assert_eq!(there, content);
    }
    let large = Bytes::from(vec![0; (8 << 20) + 1]);
    let refused = object(&in_memory()).put(token(7), large).await;
    assert!(matches!(refused, Err(WriteError::TooLarge { .. })));
}

/// A store that can't hold a fence is found before any data is in it.
#[tokio::test]
async fn a_store_that_can_not_write_on_a_condition_is_found_out() {
    let scratch = "probe".into();
    probe(&in_memory(), &scratch).await.unwrap();
    probe(&S3Server::start(Faults::default()).await.store(), &scratch).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let files: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    assert!(matches!(probe(&files, &scratch).await, Err(Unfit::NotSupported(_))));
    object(&files).put(token(5), "first").await.unwrap();
    let refused = object(&files).put(token(6), "second").await;
    assert!(matches!(refused, Err(WriteError::Store(_))), "{refused:?}");

    for (ignores, name) in [("if-match", "If-Match"), ("if-none-match", "If-None-Match")] {
        let server = S3Server::start(Faults { ignores: Some(ignores), ..Faults::default() }).await;
        match probe(&server.store(), &scratch).await {
            Err(Unfit::Ignores { condition }) => assert_eq!(condition, name),
            other => panic!("a store that ignores {name}: {other:?}"),
        }
    }
}
