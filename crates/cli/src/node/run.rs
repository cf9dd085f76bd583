//! A node that runs: everything that it does is one task, none of which can hold up its threads.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use falconet::{Deliveries, Events, IdentityKey, Node, Peer};

use super::config::{Config, Record, Stats};
use super::event::{Counters, Event, PeerCounters};
use super::lead::Broadcaster;
use super::setup::{Lead, Setup, own_record};
use super::signals::{Request, Signals};
use crate::exit::Failure;
use crate::output::remark;

/// Starts the node, prints what happens until it is told to stop, and stops it.
///
/// # Errors
/// Exit code 1: it did not start.
pub(super) async fn run(path: &Path, config: Config, setup: Setup) -> Result<(), Failure> {
    let mut signals = Signals::install()
        .map_err(|error| Failure::run(format!("the system takes no signal handler: {error}")))?;
    let mut running = Running::start(config, setup).await?;
    let limit = running.config.run_for.map(|limit| limit.0);
    let end = tokio::time::sleep(limit.unwrap_or(Duration::MAX));
    tokio::pin!(end);
    let (deliveries, events) = (running.node.deliveries(), running.node.events());
    let printing =
        tokio::spawn(async move { tokio::join!(print_deliveries(deliveries), print_events(events)) });
    loop {
        let request = tokio::select! {
            () = &mut end, if limit.is_some() => Request::Stop,
            request = signals.next() => request,
            () = running.work() => Request::Stop,
        };
        match request {
            Request::Stop => break,
            Request::Reload => running.reload(path).await,
        }
    }
    running.broadcaster.stop().await;
    // Nobody else holds it any more; if somebody did, its threads would end with the process.
    if let Some(node) = Arc::into_inner(running.node) {
        node.shutdown().await;
    }
    // Ends by itself once all that was kept is printed.
    printing.await.ok();
    Event::Stopped.print();
    Ok(())
}

/// A node, and what its configuration came to.
struct Running {
    node: Arc<Node>,
    broadcaster: Broadcaster,
    config: Config,
    known: HashSet<IdentityKey>,
    epoch: Option<u32>,
    lead: Option<Lead>,
}

impl Running {
    async fn start(config: Config, setup: Setup) -> Result<Self, Failure> {
        let mut builder = setup.builder;
        if let Some((epoch, members)) = &setup.validators {
            builder = builder.validators(*epoch, members.clone());
        }
        let known = setup.peers.iter().map(Peer::identity).collect();
        let node = builder.peers(setup.peers).start().await;
        let node = node.map_err(|error| Failure::run(format!("the node did not start: {error}")))?;
        let node = Arc::new(node);
        let running = Self {
            broadcaster: Broadcaster::spawn(Arc::clone(&node)),
            node,
            config,
            known,
            epoch: setup.validators.map(|(epoch, _)| epoch),
            lead: setup.lead,
        };
        Event::Started {
            identity: running.node.identity().to_string(),
            transport: running.node.transport_key().to_string(),
            listen: running.node.local_addr(),
            listen_plain: running.node.local_plain_addr(),
            version: env!("CARGO_PKG_VERSION"),
        }
        .print();
        if let (Some(epoch), Some(lead)) = (running.epoch, &running.lead) {
            let told = running.node.set_leader_schedule(epoch, lead.schedule());
            told.map_err(|error| Failure::run(error.to_string()))?;
        }
        if let Some(record) = &running.config.record {
            running.publish(record, &running.config).await?;
        }
        Ok(running)
    }

    /// Broadcasts and prints counters, for ever.
    async fn work(&self) {
        let lead = async {
            match (&self.lead, self.epoch) {
                (Some(lead), Some(epoch)) => lead.run(self.node.identity(), epoch, &self.broadcaster).await,
                _ => std::future::pending().await,
            }
        };
        tokio::join!(lead, self.print_stats(self.config.stats));
    }

    async fn print_stats(&self, stats: Stats) {
        let Some(interval) = stats.interval else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(interval.0).await;
            Event::Stats(Box::new(self.counters(stats.peers).await)).print();
        }
    }

    async fn counters(&self, with_peers: bool) -> Counters {
        let stats = self.node.stats();
        let peers = if with_peers {
            self.peer_counters().await
        } else {
            Vec::new()
        };
        Counters {
            connected_peers: stats.connected_peers,
            authenticated: (&stats.authenticated).into(),
            plain: (&stats.plain).into(),
            broadcasts: stats.broadcasts.broadcasts,
            delivered: stats.broadcasts.delivered,
            chunks_received: stats.broadcasts.chunks_received,
            chunks_accepted: stats.broadcasts.chunks_accepted,
            chunks_relayed: stats.broadcasts.chunks_relayed,
            tainted: stats.broadcasts.tainted,
            expired: stats.broadcasts.expired,
            equivocations: stats.broadcasts.equivocations,
            discards: stats.discards.into_iter().collect(),
            drops: stats.drops.into_iter().collect(),
            peers,
        }
    }

    async fn peer_counters(&self) -> Vec<PeerCounters> {
        let mut all = Vec::with_capacity(self.known.len());
        for identity in &self.known {
            if let Ok(stats) = self.node.peer_stats(identity).await {
                all.push(PeerCounters {
                    peer: identity.to_string(),
                    address: stats.address,
                    session_s: stats.session.map(|(_, age)| age.as_secs()),
                    fallbacks: stats.fallbacks,
                    record_sequence: stats.record_sequence,
                });
            }
        }
        all.sort_by(|one, other| one.peer.cmp(&other.peer));
        all
    }

    /// Reads the file again, and takes over what can change while the node runs. A file that is wrong changes nothing.
    async fn reload(&mut self, path: &Path) {
        match self.try_reload(path).await {
            Ok(peers_added) => Event::Reloaded {
                peers_added,
                epoch: self.epoch,
            },
            Err(failure) => Event::ReloadFailed {
                error: failure.to_string(),
            },
        }
        .print();
    }

    async fn try_reload(&mut self, path: &Path) -> Result<usize, Failure> {
        let config = Config::load(path)?;
        let setup = Setup::new(&config)?;
        if setup.identity != self.node.identity() {
            return Err(Failure::usage("identity: it cannot change while the node runs"));
        }
        let mut peers_added = 0;
        for peer in setup.peers {
            if self.known.insert(peer.identity()) {
                self.node
                    .add_peer(peer)
                    .map_err(|error| Failure::run(error.to_string()))?;
                peers_added += 1;
            }
        }
        if let Some((epoch, members)) = setup
            .validators
            .filter(|(epoch, _)| self.epoch.is_none_or(|now| now < *epoch))
        {
            let told = self.node.set_validators(epoch, members);
            told.map_err(|error| Failure::run(error.to_string()))?;
            self.node.enter_epoch(epoch);
            self.epoch = Some(epoch);
        }
        if let (Some(epoch), Some(lead)) = (self.epoch, &setup.lead) {
            let told = self.node.set_leader_schedule(epoch, lead.schedule());
            told.map_err(|error| Failure::run(error.to_string()))?;
        }
        self.lead = setup.lead;
        if let Some(record) = config
            .record
            .as_ref()
            .filter(|record| self.config.record.as_ref() != Some(record))
        {
            self.publish(record, &config).await?;
        }
        self.config = config;
        Ok(peers_added)
    }

    /// Signs a record as the file says, writes it where the file says.
    async fn publish(&self, record: &Record, config: &Config) -> Result<(), Failure> {
        let own = own_record(record)?;
        let published = self.node.publish_record(own).await;
        let published = published.map_err(|error| Failure::run(format!("record: {error}")))?;
        let text = hex::encode(published.encode());
        if let Some(file) = &record.file {
            let path = config.at(file);
            std::fs::write(&path, format!("{text}\n"))
                .map_err(|error| Failure::run(format!("record.file {}: {error}", path.display())))?;
        }
        Event::RecordPublished {
            sequence: published.content().sequence,
            record: text,
        }
        .print();
        Ok(())
    }
}

async fn print_deliveries(mut deliveries: Deliveries) {
    while let Some(delivery) = deliveries.recv().await {
        Event::delivered(&delivery).print();
    }
}

async fn print_events(mut events: Events) {
    while let Some((event, missed)) = events.recv().await {
        if missed > 0 {
            remark(format_args!(
                "{missed} events were lost, since standard output was slow"
            ));
            Event::EventsMissed { count: missed }.print();
        }
        Event::from(event).print();
    }
}
