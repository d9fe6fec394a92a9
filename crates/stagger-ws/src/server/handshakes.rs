//! The handshakes in progress, and which of them makes room for a newer connection.

use core::net::{IpAddr, Ipv6Addr};
use core::pin::pin;
use core::time::Duration;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex};

use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::builder::SocketsBuilder;
use crate::sync::{lock, saturating_add};

/// The handshakes in progress of one listener. Their number is limited, so connections that hold one without using it
/// must not keep out those that would.
pub(super) struct Handshakes {
    max: usize,
    /// The age from which a handshake that is not complete makes room.
    stale_after: Duration,
    state: Mutex<State>,
    /// Notified when a handshake has ended, or is no longer silent.
    changed: Notify,
}

struct State {
    next_id: u64,
    /// Connections that have sent nothing, oldest first.
    silent: BTreeMap<u64, Handshake>,
    /// Connections that have sent something, oldest first.
    begun: BTreeMap<u64, Handshake>,
    /// The connection that has been asked to make room and has not replied.
    asked: Option<u64>,
    by_peer: PeerCounts,
}

#[derive(Clone)]
struct Handshake {
    since: Instant,
    evict: Arc<Notify>,
}

/// A drop guard for a handshake in progress.
pub(super) struct HandshakeSlot {
    handshakes: Arc<Handshakes>,
    id: u64,
    peer: IpAddr,
    handshake: Handshake,
}

/// The reason why nothing arrived from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// It had to make room for a newer connection.
    Evicted,
    /// It was silent for too long, or it has ended.
    Ended,
}

/// The result of an attempt to get a slot.
enum Entry {
    Entered(HandshakeSlot),
    PeerLimit,
    /// All slots are taken. Try again after a change, and at this time if there is one.
    Full(Option<Instant>),
}

impl Handshakes {
    pub(super) fn new(settings: &SocketsBuilder) -> Self {
        Self {
            max: settings.max_handshakes,
            stale_after: settings.first_byte_timeout,
            state: Mutex::new(State::new(settings.max_handshakes_per_peer)),
            changed: Notify::new(),
        }
    }

    /// Waits for a slot. If all are taken, the oldest silent connection has to make room, or else the oldest one that
    /// is overdue. Returns `None` if the peer has too many already.
    pub(super) async fn enter(self: &Arc<Self>, address: IpAddr) -> Option<HandshakeSlot> {
        let peer = peer(address);
        loop {
            let mut changed = pin!(self.changed.notified());
            // Before the attempt; otherwise a change in between would be missed.
            changed.as_mut().enable();
            match self.try_enter(peer) {
                Entry::Entered(slot) => return Some(slot),
                Entry::PeerLimit => return None,
                Entry::Full(None) => changed.await,
                Entry::Full(Some(until)) => tokio::select! {
                    () = changed => {}
                    () = sleep_until(until) => {}
                },
            }
        }
    }

    fn try_enter(self: &Arc<Self>, peer: IpAddr) -> Entry {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        if state.by_peer.is_at_limit(peer) {
            return Entry::PeerLimit;
        }
        let now = Instant::now();
        if state.silent.len() + state.begun.len() >= self.max {
            return Entry::Full(state.make_room(now, self.stale_after));
        }
        let id = state.next_id;
        state.next_id += 1;
        let handshake = Handshake { since: now, evict: Arc::default() };
        state.silent.insert(id, handshake.clone());
        state.by_peer.increment(peer);
        Entry::Entered(HandshakeSlot { handshakes: Arc::clone(self), id, peer, handshake })
    }
}

impl State {
    fn new(max_per_peer: Option<usize>) -> Self {
        let (silent, begun) = (BTreeMap::new(), BTreeMap::new());
        Self { next_id: 0, silent, begun, asked: None, by_peer: PeerCounts::new(max_per_peer) }
    }

    /// Asks one connection to make room, unless one has been asked already. Returns when to try again if there is none.
    fn make_room(&mut self, now: Instant, stale_after: Duration) -> Option<Instant> {
        if self.asked.is_some() {
            return None;
        }
        let (id, oldest) = match (self.silent.first_key_value(), self.begun.first_key_value()) {
            (Some(silent), _) => silent,
            (None, Some((id, oldest))) => {
                let stale = saturating_add(oldest.since, stale_after);
                if now < stale {
                    return Some(stale);
                }
                (id, oldest)
            }
            (None, None) => return None,
        };
        self.asked = Some(*id);
        oldest.evict.notify_one();
        None
    }
}

impl HandshakeSlot {
    /// Returns when the connection was accepted.
    pub(super) const fn since(&self) -> Instant {
        self.handshake.since
    }

    /// Returns what counts as the peer of the connection.
    pub(super) const fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Waits until the connection has sent something, at most until this time and only as long as it need not make
    /// room.
    pub(super) async fn first_byte(&self, stream: TcpStream, until: Instant) -> Result<TcpStream, Silence> {
        let mut byte = [0];
        let silence = tokio::select! {
            biased;
            peeked = stream.peek(&mut byte) => {
                if !matches!(peeked, Ok(1..)) {
                    return Err(Silence::Ended);
                }
                self.begin();
                return Ok(stream);
            }
            () = self.evicted() => Silence::Evicted,
            () = sleep_until(until) => Silence::Ended,
        };
        // A byte may have arrived that the runtime has not noticed: in a storm, a connection may be asked for its slot
        // before the runtime has polled its socket.
        let stream = unnoticed_byte(stream).ok_or(silence)?;
        self.begin();
        Ok(stream)
    }

    /// Waits until the connection has to make room.
    pub(super) async fn evicted(&self) {
        self.handshake.evict.notified().await;
    }

    /// Records that the connection has sent something.
    fn begin(&self) {
        let mut state = lock(&self.handshakes.state);
        if let Some(handshake) = state.silent.remove(&self.id) {
            state.begun.insert(self.id, handshake);
        }
        state.asked.take_if(|asked| *asked == self.id);
        drop(state);
        self.handshakes.changed.notify_waiters();
    }
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        let mut guard = lock(&self.handshakes.state);
        let state = &mut *guard;
        state.silent.remove(&self.id);
        state.begun.remove(&self.id);
        state.asked.take_if(|asked| *asked == self.id);
        state.by_peer.decrement(self.peer);
        drop(guard);
        self.handshakes.changed.notify_waiters();
    }
}

/// Returns the stream if there is a byte to read, as the operating system knows it.
fn unnoticed_byte(stream: TcpStream) -> Option<TcpStream> {
    let peek = || -> io::Result<_> {
        let stream = stream.into_std()?;
        match stream.peek(&mut [0])? {
            0 => Ok(None),
            _ => TcpStream::from_std(stream).map(Some),
        }
    };
    peek().ok().flatten()
}

/// Returns the peer of an address: an IPv4 address, or the /64 network of an IPv6 address, since one host has all of
/// it.
pub(super) fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            const NETWORK: u128 = !(u64::MAX as u128);
            Ipv6Addr::from_bits(address.to_bits() & NETWORK).into()
        }
        address => address,
    }
}

/// How many of something each peer has. Peers that have none take up no memory.
#[derive(Debug)]
pub(super) struct PeerCounts {
    max: usize,
    counts: HashMap<IpAddr, usize>,
}

impl PeerCounts {
    pub(super) fn new(max: Option<usize>) -> Self {
        Self { max: max.unwrap_or(usize::MAX), counts: HashMap::new() }
    }

    /// Returns whether a peer has as many as it may have.
    pub(super) fn is_at_limit(&self, peer: IpAddr) -> bool {
        self.counts.get(&peer).is_some_and(|&count| count >= self.max)
    }

    pub(super) fn increment(&mut self, peer: IpAddr) {
        *self.counts.entry(peer).or_default() += 1;
    }

    pub(super) fn decrement(&mut self, peer: IpAddr) {
        if let Some(count) = self.counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&peer);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv6Addr;
    use std::io::Write as _;

    use futures_util::FutureExt as _;
    use stagger::admission::{Admission, Secret};

    use super::*;
    use crate::server::sockets::Sockets;

    fn handshakes(max: usize) -> Arc<Handshakes> {
        let admission = Admission::per_second(1).build(Secret::new([1; 16])).unwrap();
        Arc::new(Handshakes::new(&Sockets::builder(admission).max_handshakes(max)))
    }

    fn enter(handshakes: &Arc<Handshakes>) -> HandshakeSlot {
        match handshakes.try_enter(Ipv6Addr::LOCALHOST.into()) {
            Entry::Entered(slot) => slot,
            _ => panic!("there is a slot"),
        }
    }

    /// Asks for a slot although all are taken. Returns which of them have to make room, and when to try again.
    fn ask(handshakes: &Arc<Handshakes>, slots: &[HandshakeSlot]) -> (Vec<bool>, Option<Instant>) {
        let Entry::Full(until) = handshakes.try_enter(Ipv6Addr::LOCALHOST.into()) else {
            panic!("all slots are taken")
        };
        (slots.iter().map(|slot| slot.evicted().now_or_never().is_some()).collect(), until)
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_silent_connection_makes_room_before_any_that_has_begun() {
        let handshakes = handshakes(4);
        let slots = [(); 4].map(|()| enter(&handshakes));
        slots[0].begin();
        assert_eq!(ask(&handshakes, &slots), (vec![false, true, false, false], None));
        // One at a time: it has not replied.
        assert_eq!(ask(&handshakes, &slots), (vec![false; 4], None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_has_begun_makes_room_only_when_it_is_overdue() {
        let handshakes = handshakes(2);
        let slots = [(); 2].map(|()| enter(&handshakes));
        slots.iter().for_each(HandshakeSlot::begin);
        let stale = Instant::now() + Duration::from_secs(1);
        assert_eq!(ask(&handshakes, &slots), (vec![false, false], Some(stale)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(ask(&handshakes, &slots), (vec![true, false], None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_that_is_free_again_counts_no_longer_for_its_peer() {
        let admission = Admission::per_second(1).build(Secret::new([1; 16])).unwrap();
        let settings = Sockets::builder(admission).max_handshakes(9).max_handshakes_per_peer(1);
        let handshakes = Arc::new(Handshakes::new(&settings));
        for _ in 0..3 {
            let slot = enter(&handshakes);
            assert!(matches!(handshakes.try_enter(Ipv6Addr::LOCALHOST.into()), Entry::PeerLimit));
            drop(slot);
        }
        assert!(lock(&handshakes.state).by_peer.is_empty());
    }

    // The byte has arrived before the runtime has polled the socket for the first time.
    #[tokio::test]
    async fn a_byte_that_the_runtime_has_not_noticed_counts() {
        for (sent, want) in [(&b"G"[..], Ok(1)), (b"", Err(Silence::Evicted))] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.write_all(sent).unwrap();
            let (stream, address) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let handshakes = handshakes(1);
            let slot = handshakes.enter(address.ip()).await.unwrap();
            assert!(matches!(handshakes.try_enter(address.ip()), Entry::Full(None)), "it is asked to make room");
            let until = Instant::now() + Duration::from_secs(3600);
            let stream = slot.first_byte(TcpStream::from_std(stream).unwrap(), until).await;
            assert_eq!(stream.map(|stream| stream.into_std().unwrap().peek(&mut [0]).unwrap()), want);
        }
    }

    #[test]
    fn a_peer_is_an_ipv4_address_or_an_ipv6_network() {
        for (address, want) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("2001:db8:1:2::", "2001:db8:1:2::"),
        ] {
            assert_eq!(peer(address.parse().unwrap()), want.parse::<IpAddr>().unwrap(), "{address}");
        }
    }
}
