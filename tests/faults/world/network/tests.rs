//! Each fault of the network does what it says, shown with plain datagrams.

use super::super::inside;
use super::{Network, Way};
use crate::run::Run;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout};

const PORT: u16 = 9_999;

/// Sends so many datagrams of so many bytes from node `from` to node `to`: how many arrived, and how long it took.
fn send(network: &Network, (from, to): (usize, usize), count: usize, bytes: usize) -> (usize, Duration) {
    let address = network.address(to);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let receiver = inside::begin(network.node(to), move || async move {
        let socket = UdpSocket::bind((address, PORT)).await.unwrap();
        ready.send(()).unwrap();
        let begun = Instant::now();
        let (mut arrived, mut last) = (0, begun);
        let mut buffer = vec![0; 65_536];
        while arrived < count && timeout(Duration::from_millis(700), socket.recv(&mut buffer)).await.is_ok() {
            (arrived, last) = (arrived + 1, Instant::now());
        }
        (arrived, last - begun)
    });
    is_ready.recv().unwrap();
    let sender = inside::begin(network.node(from), move || async move {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await.unwrap();
        for _ in 0..count {
            // A packet that is dropped is lost, and one to a closed door is refused; both show at the receiver.
            drop(socket.send_to(&vec![7; bytes], (address, PORT)).await);
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    });
    inside::join(sender);
    inside::join(receiver)
}

fn arrives(network: &Network, ends: (usize, usize)) -> bool {
    send(network, ends, 3, 10).0 > 0
}

#[test]
fn cuts_are_one_way_or_both_and_heal() {
    let _turn = Run::begin("cuts_are_one_way_or_both_and_heal");
    let network = Network::make(3);
    assert!(arrives(&network, (1, 2)) && arrives(&network, (2, 1)));

    network.cut(1, 2, Way::There);
    assert!(!arrives(&network, (1, 2)) && arrives(&network, (2, 1)));

    network.isolate(3, &[1, 2]);
    assert!(!arrives(&network, (1, 3)) && !arrives(&network, (3, 1)) && !arrives(&network, (3, 2)));

    network.heal();
    assert!(arrives(&network, (1, 2)) && arrives(&network, (3, 1)) && arrives(&network, (2, 3)));
}

#[test]
fn a_lossy_link_loses_about_what_it_should_and_a_slow_one_takes_its_time() {
    let _turn = Run::begin("a_lossy_link_loses_about_what_it_should_and_a_slow_one_takes_its_time");
    let network = Network::make(2);

    network.lose(1, 2, 30);
    let (arrived, _) = send(&network, (1, 2), 1_000, 10);
    assert!((600..800).contains(&arrived), "{arrived} of 1000 arrived");
    network.heal();

    let (arrived, quick) = send(&network, (1, 2), 40, 1_000);
    network.slow(1, 1_000);
    let (_, slow) = send(&network, (1, 2), 40, 1_000);
    assert_eq!(arrived, 40);
    assert!(slow > quick + Duration::from_millis(100), "{slow:?} after {quick:?}");
}
