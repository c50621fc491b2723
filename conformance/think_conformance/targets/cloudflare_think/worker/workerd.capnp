# How workerd serves the bundled worker. Port and data folder come from the command line.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "agent", worker = .worker),
    # The scripted model and the ledger of effects listen on loopback.
    (name = "network", network = (allow = ["public", "private"])),
    (name = "disk", disk = (writable = true)),
  ],
  sockets = [(name = "http", http = (), service = "agent")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-06-11",
  compatibilityFlags = ["nodejs_compat"],
  bindings = [
    (name = "THINK_MODEL_URL", fromEnvironment = "THINK_MODEL_URL"),
    (name = "THINK_EFFECTS_URL", fromEnvironment = "THINK_EFFECTS_URL"),
    (name = "ConformanceAgent", durableObjectNamespace = "ConformanceAgent"),
  ],
  globalOutbound = "network",
  durableObjectNamespaces = [
    (className = "ConformanceAgent", uniqueKey = "conformance-agent", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "disk"),
);
