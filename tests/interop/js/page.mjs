// The page: the two hooks as their documentation shows them, and a report after every render.
import { useAgentChat } from "@cloudflare/think/react";
import { useAgent } from "agents/react";
import { createElement, Suspense, useEffect } from "react";
import { createRoot } from "react-dom/client";

function App() {
  const agent = useAgent({ ...where, onOpen: () => { globalThis.connected = true; tell({ opened: 1 }); } });
  const chat = useAgentChat({ agent });
  globalThis.chat = chat;
  useEffect(() => {
    const busy = chat.isStreaming || chat.isServerStreaming || chat.isRecovering || chat.isToolContinuation;
    tell({ shown: { status: chat.status, error: chat.error?.message ?? null, messages: chat.messages, busy } });
  });
  return null;
}

createRoot(document.getElementById("root")).render(createElement(Suspense, null, createElement(App)));
