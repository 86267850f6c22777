//! One connection: opened, asked and judged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{Cmd, Value};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::address::Place;
use super::check::Info;
use super::fault::{Failure, Fault, Remedy};
use super::stream::{Opened, Opener};

/// A connection to one server. What is in flight on it keeps it open.
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: JoinHandle<()>,
    answered: AtomicBool,
    silent_since: Mutex<Option<Instant>>,
    address: Address,
}

/// What to send.
pub(crate) struct Request {
    command: Cmd,
    #[cfg(feature = "redis-cluster")]
    asking: bool,
}

impl Request {
    pub(crate) fn new(command: Cmd) -> Self {
        Self {
            command,
            #[cfg(feature = "redis-cluster")]
            asking: false,
        }
    }

    /// For a node that is about to own the key.
    #[cfg(feature = "redis-cluster")]
    pub(crate) fn asking(self, asking: bool) -> Self {
        Self { asking, ..self }
    }
}

impl Link {
    /// Connects and logs in. The caller bounds the time.
    pub(crate) async fn open(opener: &Opener, address: &Address) -> Result<Self, Failure> {
        let unreachable = |_| Fault::unavailable("the store cannot be reached").with_nothing();
        let link = Self::over(opener.open(address).await.map_err(unreachable)?, address);
        if let Some(password) = &address.password {
            let mut login = redis::cmd("AUTH");
            login.arg(address.username.as_deref()).arg(password.expose());
            link.ask(&login).await.map_err(refused_login)?;
        }
        if address.database != 0 {
            link.ask(redis::cmd("SELECT").arg(address.database)).await?;
        }
        Ok(link)
    }

    /// Connects and logs in; what the server sends by itself goes to `push`.
    pub(crate) async fn open_to_listen(
        opener: &Opener,
        address: &Address,
        push: impl AsyncPushSender,
    ) -> Result<Self, Failure> {
        let opened = opener.open_to_listen(address, push).await;
        Ok(Self::over(opened.map_err(|error| Failure::of(&error))?, address))
    }

    fn over((connection, driver): Opened, address: &Address) -> Self {
        Self {
            connection,
            driver: tokio::spawn(driver),
            answered: AtomicBool::new(false),
            silent_since: Mutex::new(None),
            address: address.clone(),
        }
    }

    /// Connects to a server that takes writes and can keep leases.
    pub(crate) async fn open_primary(opener: &Opener, address: &Address) -> Result<Self, Failure> {
        let (link, info) = Self::open_checked(opener, address).await?;
        info.check_cluster(false).map_err(Fault::with_nothing)?;
        if !info.is_primary() {
            let fault = Fault::unavailable("the store is read-only: the server is a replica");
            return Err(fault.with_nothing());
        }
        Ok(link)
    }

    /// Connects to a cluster's node that can keep leases.
    #[cfg(feature = "redis-cluster")]
    pub(crate) async fn open_node(opener: &Opener, address: &Address) -> Result<Self, Failure> {
        let (link, info) = Self::open_checked(opener, address).await?;
        info.check_cluster(true).map_err(Fault::with_nothing)?;
        Ok(link)
    }

    /// Each server is checked, for the next one need not be set up as the last one was.
    async fn open_checked(opener: &Opener, address: &Address) -> Result<(Self, Info), Failure> {
        let link = Self::open(opener, address).await?;
        let info = Info::from_reply(link.ask(&redis::cmd("INFO")).await?);
        info.check(opener.allow_eviction).map_err(Fault::with_nothing)?;
        Ok((link, info))
    }

    /// Sends a command and waits for its answer, at most to `deadline`.
    ///
    /// Two calls in a row that end in silence, the second begun after the first ended, are
    /// reason to leave the link.
    pub(crate) async fn send(
        &self,
        request: &Request,
        deadline: Instant,
    ) -> Result<Value, Failure> {
        let begun = Instant::now();
        let answer = timeout_at(deadline, self.request(request)).await;
        let mut silent_since = self.silent_since.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(Ok(value)) => {
                self.answered.store(true, Ordering::Relaxed);
                *silent_since = None;
                Ok(value)
            }
            Ok(Err(failure)) => {
                if failure.remedy != Remedy::Leave {
                    self.answered.store(true, Ordering::Relaxed);
                    *silent_since = None;
                }
                Err(failure)
            }
            Err(_) => {
                let again = silent_since.is_some_and(|since| since <= begun);
                silent_since.get_or_insert_with(Instant::now);
                let remedy = if again { Remedy::Leave } else { Remedy::Nothing };
                Err(Fault::lost("the store did not answer in time").with(remedy))
            }
        }
    }

    async fn request(&self, request: &Request) -> Result<Value, Failure> {
        #[cfg(feature = "redis-cluster")]
        if request.asking {
            // Both in one piece, for ASKING holds for the next command of the connection.
            let mut both = redis::pipe();
            both.cmd("ASKING").ignore().add_command(request.command.clone());
            let answers = self.connection.clone().send_packed_commands(&both, 0, 2).await;
            let answers = answers.map_err(|error| Failure::of(&error))?;
            // When ASKING is refused, the command is sent back to where it came from.
            let answers =
                answers.into_iter().map(Value::extract_error).collect::<Result<Vec<_>, _>>();
            let answers = answers.map_err(|error| Failure::of(&error))?;
            return Ok(answers.into_iter().last().unwrap_or(Value::Nil));
        }
        self.ask(&request.command).await
    }

    pub(crate) async fn ask(&self, command: &Cmd) -> Result<Value, Failure> {
        let mut connection = self.connection.clone();
        let answer = connection.send_packed_command(command).await;
        answer.and_then(Value::extract_error).map_err(|error| Failure::of(&error))
    }

    /// Whether its socket is known to be closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.driver.is_finished()
    }

    /// Where it leads, and as whom.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Where it leads.
    pub(crate) fn place(&self) -> &Place {
        &self.address.place
    }

    /// Whether a call has had an answer on it.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A login that fails without a code of its own fails for its credentials (a server that asks
/// for none says ERR).
fn refused_login(failure: Failure) -> Failure {
    match failure.fault {
        Fault::Refused { .. } | Fault::Script { .. } => {
            Fault::refused("the store refused the credentials").with(Remedy::Leave)
        }
        Fault::Unavailable { .. } | Fault::WithoutOrders => failure,
    }
}
