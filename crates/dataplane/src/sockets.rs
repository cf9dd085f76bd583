//! The sockets of a dataplane: bound together, then given to the threads.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use crossbeam_channel::Sender;
use falconet_transport::{IndexKey, Lane, Transmit};

use crate::config::DataplaneConfig;
use crate::dataplane::StartError;
use crate::delay_line::DelayLine;
use crate::egress::Egress;
use crate::handshake_thread::{Exit, Intake};
use crate::kernel_bans::KernelBans;
use crate::kernel_drops::KernelDrops;
use crate::socket::{Port, PortOptions, bind};
use crate::steering::{Steered, filter_plain, steer};

/// The bound sockets.
pub(crate) struct Sockets {
    pub(crate) authenticated: Option<Steered>,
    pub(crate) plain: Option<(UdpSocket, SocketAddr)>,
}

impl Sockets {
    pub(crate) fn bind(config: &DataplaneConfig, index_key: IndexKey) -> Result<Sockets, StartError> {
        let open = |address: Option<SocketAddr>| {
            let bound = |address| {
                bind(address, config.socket_buffer)
                    .and_then(|socket| on_device(socket, config.device.as_deref()))
                    .map_err(|e| bind_error(address, e))
            };
            address.map(|address| bound(address).map(|socket| (socket, address)))
        };
        let filtered = config.kernel_filter.then_some(index_key);
        let steered = |(socket, address)| {
            steer(socket, config.kernel_steering, filtered).map_err(|e| bind_error(address, e))
        };
        let plain = |(socket, address): (UdpSocket, SocketAddr)| {
            if config.kernel_filter {
                filter_plain(&socket);
            }
            let local = socket.local_addr().map_err(|e| bind_error(address, e))?;
            Ok::<_, StartError>((socket, local))
        };
        Ok(Sockets {
            authenticated: open(config.listen).transpose()?.map(steered).transpose()?,
            plain: open(config.listen_plain).transpose()?.map(plain).transpose()?,
        })
    }

    /// How the handshake thread's messages leave.
    pub(crate) fn exit(&self, config: &DataplaneConfig, transmits: Sender<Transmit>) -> io::Result<Exit> {
        Ok(match &self.authenticated {
            None => Exit::None,
            Some(_) if config.link.is_some() => Exit::Dataplane(transmits),
            Some(steered) => Exit::Socket(steered.data.try_clone()?),
        })
    }

    /// The socket that the handshake thread reads, inside the runtime.
    pub(crate) fn handshakes(&self) -> io::Result<Option<Intake>> {
        let steered = self
            .authenticated
            .as_ref()
            .and_then(|steered| steered.handshakes.as_ref());
        steered
            .map(|socket| Intake::new(tokio::net::UdpSocket::from_std(socket.try_clone()?)?))
            .transpose()
    }

    /// Handles of the sockets whose filters can be told of bans.
    pub(crate) fn kernel_bans(
        &self,
        config: &DataplaneConfig,
        index_key: IndexKey,
    ) -> io::Result<KernelBans> {
        if !config.kernel_filter {
            return Ok(KernelBans::default());
        }
        let steered = self.authenticated.as_ref();
        let steered = steered.and_then(|steered| Some((&steered.data, steered.handshakes.as_ref()?)));
        let steered =
            steered.map(|(data, handshakes)| Ok((data.try_clone()?, handshakes.try_clone()?, index_key)));
        let plain = self.plain.as_ref().map(|(socket, _)| socket.try_clone());
        Ok(KernelBans {
            steered: steered.transpose().map_err(|error: io::Error| error)?,
            plain: plain.transpose()?,
        })
    }

    pub(crate) fn kernel_drops(&self) -> io::Result<KernelDrops> {
        let steered = self.authenticated.iter();
        let authenticated = steered.flat_map(|s| [Some(&s.data), s.handshakes.as_ref()]);
        let plain = self.plain.iter().map(|(socket, _)| Some(socket));
        KernelDrops::of(authenticated.chain(plain).flatten())
    }

    pub(crate) fn egress(self, config: &DataplaneConfig) -> io::Result<Egress> {
        let options = PortOptions {
            segmentation: config.segmentation,
            aggregation: config.aggregation,
            mtu: config.mtu,
        };
        let port = |lane, socket: Option<UdpSocket>| {
            socket.map(|socket| Port::new(lane, socket, options)).transpose()
        };
        Ok(Egress::new(
            port(
                Lane::Authenticated,
                self.authenticated.map(|steered| steered.data),
            )?,
            port(Lane::Plain, self.plain.map(|(socket, _)| socket))?,
            config.link.clone().map(DelayLine::new),
        ))
    }
}

/// Keeps `socket` to one network device, where the system can.
fn on_device(socket: UdpSocket, device: Option<&str>) -> io::Result<UdpSocket> {
    let Some(device) = device else {
        return Ok(socket);
    };
    #[cfg(target_os = "linux")]
    {
        socket2::SockRef::from(&socket).bind_device(Some(device.as_bytes()))?;
        Ok(socket)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = device;
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn bind_error(address: SocketAddr, source: io::Error) -> StartError {
    StartError::Bind { address, source }
}
