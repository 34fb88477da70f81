"""What a person sees: the page in the browser and the command line. No formula lives here.

cli           the command line: every command of runcast, here or in a module of its own
main          entry point of the page: streamlit run app/main.py
server        the page with two addresses for whoever watches it: streamlit run
              app/server.py

    cli           the command line: every command of runcast, here or in a module of its own
    main          entry point of the page: streamlit run app/main.py
    server        the page with two addresses for whoever watches it: streamlit run
                  app/server.py
"""
