from lloom_gitops.sim.gateway.serve import main

raise SystemExit(main())
