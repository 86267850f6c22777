//! A Redis server, and what only tests do to it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use reqwest_lease::conformance::Fixture;
use reqwest_lease::{LeaseStore, PoolName, RedisStore};

use super::program::Program;

/// The server program of `REDIS_SERVER`, else of the search path.
pub(crate) fn program() -> String {
    std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

/// A running server; the one of `REDIS_SERVER`, else of the search path.
pub(crate) struct Server(Program);

impl Server {
    /// A server of the test's own.
    pub(crate) fn start(more: &[&str]) -> Self {
        let arguments = |port: u16, directory: &Path| {
            let port = port.to_string();
            let directory = directory.to_str().unwrap();
            ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir", directory]
                .iter()
                .chain(more)
                .map(ToString::to_string)
                .collect()
        };
        Self(Program::start(&program(), "redis-server", arguments))
    }

    /// The server that tests share; it ends with the last of those that run.
    pub(crate) fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap();
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start(&[]));
            *shared = Arc::downgrade(&server);
            server
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.0.address())
    }

    #[cfg(all(feature = "redis-cluster", feature = "redis-sentinel"))]
    pub(crate) fn port(&self) -> u16 {
        self.0.address().port()
    }

    /// Where it writes.
    pub(crate) fn directory(&self) -> &Path {
        self.0.directory()
    }

    /// Sends the process a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// A connection beside the store's.
    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        let client = redis::Client::open(self.url()).unwrap();
        let patient = Some(Duration::from_secs(60));
        let config = redis::AsyncConnectionConfig::new()
            .set_connection_timeout(patient)
            .set_response_timeout(patient);
        client.get_multiplexed_async_connection_with_config(&config).await.unwrap()
    }
}

/// Time for a call where a test is not about time: on a busy machine a server may be put off.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A store with a namespace of its own on the shared server.
pub(crate) struct Redis {
    pub(crate) store: RedisStore,
    pub(crate) namespace: String,
    pub(crate) pool: PoolName,
    pub(crate) connection: MultiplexedConnection,
    pub(crate) server: Arc<Server>,
}

impl Redis {
    pub(crate) async fn new() -> Self {
        Self::on(Server::shared()).await
    }

    pub(crate) async fn on(server: Arc<Server>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let namespace = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Self::named(server, namespace).await
    }

    pub(crate) async fn named(server: Arc<Server>, namespace: String) -> Self {
        let connection = server.connection().await;
        // A server that still reads its files says so.
        let ready = async || redis::cmd("PING").exec_async(&mut connection.clone()).await.is_ok();
        let patience = std::time::Instant::now() + Duration::from_secs(10);
        while !ready().await && std::time::Instant::now() < patience {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let builder = RedisStore::builder(server.url()).namespace(&namespace);
        let store = builder.connect_timeout(PATIENCE).call_timeout(PATIENCE).build().await.unwrap();
        let pool = PoolName::new("conformance").unwrap();
        Self { store, namespace, pool, connection, server }
    }

    /// The name of a key of the pool.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}:{{{}}}:{name}", self.namespace, self.pool())
    }

    /// How often the server has been sent a command, by anybody.
    pub(crate) async fn calls(&self, command: &str) -> u64 {
        let stats: String = self.send("INFO commandstats").await;
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
        let calls = line.and_then(|line| line.strip_prefix("calls=")?.split(',').next());
        calls.map_or(0, |calls| calls.parse().unwrap())
    }

    /// Sends a command.
    pub(crate) async fn send<T: redis::FromRedisValue>(&self, command: &str) -> T {
        let mut words = command.split(' ');
        let mut sent = redis::cmd(words.next().unwrap());
        for word in words {
            sent.arg(word);
        }
        sent.query_async(&mut self.connection.clone()).await.unwrap()
    }
}

#[async_trait::async_trait]
impl Fixture for Redis {
    fn store(&self) -> &dyn LeaseStore {
        &self.store
    }

    /// What is recorded moves into the past; the server's clock stays.
    async fn advance(&self, by: Duration) {
        let moved: redis::RedisResult<()> = redis::Script::new(SHIFT)
            .key(self.key(""))
            .arg(u64::try_from(by.as_micros()).unwrap())
            .invoke_async(&mut self.connection.clone())
            .await;
        moved.unwrap();
    }

    fn pool(&self) -> PoolName {
        self.pool.clone()
    }
}

/// Moves all times of a pool that are recorded into the past.
const SHIFT: &str = r"
local prefix, by = KEYS[1], tonumber(ARGV[1])
local call = redis.call

local function earlier(time)
  return string.format('%.0f', time - by)
end

local function shift_set(key)
  local all = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for nth = 1, #all, 2 do
    call('ZADD', key, earlier(all[nth + 1]), all[nth])
  end
end

local mode, policy = unpack(call('HMGET', prefix .. 'meta', 'mode', 'policy'))
local sets = {'cooling', 'leases', 'cancelled'}
if mode == 'exclusive' and policy ~= 'least_assigned' then
  sets[#sets + 1] = 'ready'
end
for _, name in ipairs(sets) do
  shift_set(prefix .. name)
end
for _, key in ipairs(call('KEYS', (string.gsub(prefix, '[%[%]]', '?')) .. 'shun:*')) do
  shift_set(key)
end
local requests = call('HGETALL', prefix .. 'requests')
for nth = 1, #requests, 2 do
  local record = requests[nth + 1]
  local till = string.match(record, '^cancelled:(%d+)$')
  if till then
    record = 'cancelled:' .. earlier(till)
  else
    local fence, granted_at, rest = string.match(record, '^(%d+):(%d+):(.+)$')
    record = fence and fence .. ':' .. earlier(granted_at) .. ':' .. rest or record
  end
  call('HSET', prefix .. 'requests', requests[nth], record)
end
local due = call('HGET', prefix .. 'meta', 'due')
call('HSET', prefix .. 'meta', 'due', earlier(due))
local hold = call('HGET', prefix .. 'meta', 'hold_until')
if hold and tonumber(hold) > 0 then
  call('HSET', prefix .. 'meta', 'hold_until', earlier(hold))
end
";
