/** The pages in the order of the navigation. A page that is not the task list is loaded when it is opened. */
import type { ComponentType } from "preact";

export interface Page {
  name: string;
  title: string;
  load: (segments: readonly string[]) => Promise<ComponentType<{ subject: string }>>;
}

export const PAGES: readonly Page[] = [
  { name: "overview", title: "Overview", load: async () => (await import("./pages/overview")).Overview },
  {
    name: "tasks",
    title: "Tasks",
    load: async ([id]) => (id ? (await import("./pages/task")).TaskPage : (await import("./pages/tasks")).Tasks),
  },
  {
    name: "schedules",
    title: "Schedules",
    load: async ([name]) =>
      name ? (await import("./pages/schedule")).SchedulePage : (await import("./pages/schedules")).Schedules,
  },
  {
    name: "topologies",
    title: "Topologies",
    load: async ([id]) =>
      id ? (await import("./pages/topology")).TopologyPage : (await import("./pages/topologies")).Topologies,
  },
  { name: "locks", title: "Locks", load: async () => (await import("./pages/locks")).Locks },
  { name: "switches", title: "Switches", load: async () => (await import("./pages/switches")).Switches },
  {
    name: "bulk-operations",
    title: "Bulk operations",
    load: async ([id]) =>
      id
        ? (await import("./pages/bulk_operations")).BulkOperationPage
        : (await import("./pages/bulk_operations")).BulkOperations,
  },
];
