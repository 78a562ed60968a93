import { render } from "preact";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/pages.css";
import "./styles/topologies.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
